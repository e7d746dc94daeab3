package config

import (
	"bufio"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"golang.org/x/net/http/httpguts"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// A Test is a request, made several times in a row, and what a rule file is expected to answer.
type Test struct {
	Line, Column int // in the file
	Asked        Asked
	Answer       int      // the status of the upstream
	Rules        []string // that count the request, in any order; nil if that is not said
	Status       int      // of the answers to the first requests
	Times        uint64   // how many those are
	Then         int      // the status of the answer to the next request; 0 for none
}

// Asked is a request as a person writes it.
type Asked struct {
	Line   string // method and target: "GET /login"
	Client netip.Addr
	Header http.Header // with Host
}

// DefaultClient is the client of a request of which none is written. No client has that address (RFC 5737).
var DefaultClient = netip.MustParseAddr("192.0.2.1")

// Request returns the request as a server would get it.
func (a *Asked) Request() (*http.Request, error) {
	method, target, ok := strings.Cut(a.Line, " ")
	if !ok || strings.ContainsAny(target, " \t\r\n") || !httpguts.ValidHeaderFieldName(method) {
		return nil, fmt.Errorf("%s: want a method and a target, such as %q", yamlfile.Quote(a.Line), "GET /login?next=%2F")
	}
	if _, err := url.ParseRequestURI(target); err != nil {
		return nil, fmt.Errorf("%s: the target is none: want a path, such as %q", yamlfile.Quote(a.Line), "GET /login")
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(a.Line + " HTTP/1.1\r\nHost: localhost\r\n\r\n")))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", yamlfile.Quote(a.Line), err)
	}
	for name, values := range a.Header {
		if name == "Host" {
			r.Host = values[0]
		} else {
			r.Header[name] = slices.Clone(values)
		}
	}
	r.RemoteAddr = netip.AddrPortFrom(a.Client, 50000).String()
	return r, nil
}

// The most that a test may ask for: with it a check stays one of a second or so.
const (
	maxTests = 1000
	maxTimes = 100_000
)

func (d *decoder) tests(n *yaml.Node, f *File) {
	d.list(n, "tests", func(n *yaml.Node) {
		t := Test{Line: n.Line, Column: n.Column, Asked: Asked{Client: DefaultClient, Header: http.Header{}}, Answer: http.StatusOK, Times: 1}
		var expect *yaml.Node
		seen := d.mapping(n, "a test",
			field{"request", func(n *yaml.Node) { d.askedLine(n, &t.Asked) }},
			field{"client", func(n *yaml.Node) { d.askedClient(n, &t.Asked) }},
			field{"headers", func(n *yaml.Node) { d.askedHeader(n, &t.Asked) }},
			d.integerField("answer", 200, 599, &t.Answer),
			later("expect", &expect),
		)
		if seen == nil {
			return
		}
		t.Status = t.Answer
		if seen["request"] == nil || expect == nil {
			d.Fail(n, "a test needs request and expect")
			return
		}
		d.mapping(expect, "expect",
			field{"rules", func(n *yaml.Node) { d.expectedRules(n, f, &t) }},
			d.integerField("status", 200, 599, &t.Status),
			d.numberField("times", 1, maxTimes, &t.Times),
			d.integerField("then", 200, 599, &t.Then),
		)
		if f.Tests = append(f.Tests, t); len(f.Tests) == maxTests+1 {
			d.Fail(n, "tests: more than %d", maxTests)
		}
	})
}

func (d *decoder) askedLine(n *yaml.Node, a *Asked) {
	s, ok := d.text(n, "request")
	if !ok {
		return
	}
	a.Line = s
	if _, err := a.Request(); err != nil {
		d.Fail(n, "request: %v", err)
	}
}

func (d *decoder) askedClient(n *yaml.Node, a *Asked) {
	s, ok := d.text(n, "client")
	if !ok {
		return
	}
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Zone() != "" {
		d.Fail(n, "client: %s: want an address, such as 203.0.113.7", yamlfile.Quote(s))
		return
	}
	a.Client = addr
}

func (d *decoder) askedHeader(n *yaml.Node, a *Asked) {
	d.pairs(n, "headers", func(key, value *yaml.Node) {
		name := http.CanonicalHeaderKey(yamlfile.Target(key).Value)
		if !httpguts.ValidHeaderFieldName(name) {
			d.Fail(key, "%s is not the name of an HTTP header; write for example X-API-Key", yamlfile.Quote(name))
			return
		}
		d.list(value, "headers "+name, func(n *yaml.Node) {
			s, ok := d.text(n, "headers "+name)
			switch {
			case !ok:
			case !httpguts.ValidHeaderFieldValue(s):
				d.Fail(n, "headers %s: %s is no value of a header", name, yamlfile.Quote(s))
			case name == "Host" && a.Header[name] != nil:
				d.Fail(n, "headers Host: want one")
			default:
				a.Header[name] = append(a.Header[name], s)
			}
		})
	})
}

func (d *decoder) expectedRules(n *yaml.Node, f *File, t *Test) {
	t.Rules = []string{}
	if l := yamlfile.Target(n); l.Kind == yaml.SequenceNode && len(l.Content) == 0 {
		return // none counts it
	}
	var names []string
	for i := range f.Rules {
		names = append(names, f.Rules[i].Name)
	}
	d.list(n, "rules", func(n *yaml.Node) {
		s, ok := d.text(n, "rules")
		if ok && !slices.Contains(names, s) {
			d.Fail(n, "rules: there is no rule %s%s", yamlfile.Quote(s), didYouMean(s, names))
		}
		t.Rules = append(t.Rules, s)
	})
}
