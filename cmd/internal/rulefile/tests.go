package rulefile

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

// A Test is a request that is sent several times in a row, with the expected answers.
type Test struct {
	Line, Column int // place in the file
	Request      TestRequest
	Answer       int      // status with which the upstream answers
	Rules        []string // rules that must count the request, in any order; nil if this is not tested
	Status       int      // expected status of the answers to the first requests
	Times        uint64   // number of these first requests
	Then         int      // expected status of the answer to the next request; 0 for none
}

// A TestRequest is a request as people write it.
type TestRequest struct {
	Line   string // method and target: "GET /login"
	Client netip.Addr
	Header http.Header // with Host
}

// DefaultClient is the client of a test request that names none. No real client has this address (RFC 5737).
var DefaultClient = netip.MustParseAddr("192.0.2.1")

// HTTPRequest returns the request as a server would receive it.
func (a *TestRequest) HTTPRequest() (*http.Request, error) {
	method, target, ok := strings.Cut(a.Line, " ")
	if !ok || strings.ContainsAny(target, " \t\r\n") || !httpguts.ValidHeaderFieldName(method) {
		return nil, fmt.Errorf("%s: want a method and a target, such as %q", yamlfile.Quote(a.Line), "GET /login?next=%2F")
	}
	if _, err := url.ParseRequestURI(target); err != nil {
		return nil, fmt.Errorf("%s: the target is not valid: want a path, such as %q", yamlfile.Quote(a.Line), "GET /login")
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

// These bounds apply to the tests of a file. With them, a check takes at most about a second.
const (
	maxTests = 1000
	maxTimes = 100_000
)

// testsKind describes the list of tests. A test names rules of the file.
func (f *File) testsKind() kind[[]Test] {
	return list(mapping(func(t *Test) section { return t.section(f) }), func(d *decoder, n *yaml.Node, keyName string, before []Test, _ Test) {
		if len(before) == maxTests {
			d.Fail(n, "%s: more than %d", keyName, maxTests)
		}
	})
}

func (t *Test) section(f *File) section {
	a := &t.Request
	return section{
		name: "a test", entries: []entry{
			newEntry("request", scalar(pattern("", `^[^ ]+ [^ ]+$`), parseRequestLine), &a.Line, "", "method and target, such as `GET /login?next=%2F`").
				required("write for example request: GET /login"),
			newEntry("client", scalar(textSchema, parseClient), &a.Client, DefaultClient.String(), "the address of the client"),
			newEntry("headers", mapOf(list(text, nil), readTestHeader), &a.Header, "",
				"a mapping of names to a value or a list of values; `Host` is the host").withDefaultText("none, and `localhost` as host"),
			newEntry("answer", integer[int](200, 599), &t.Answer, "200", "the status of the upstream's answer"),
			newEntry("expect", mapping(func(t *Test) section { return t.expectSection(f) }), t, "", "the answers that weir must give").
				required("write for example expect: {times: 5, then: 429}"),
		},
		check: func(_ *decoder, n *yaml.Node, _ map[string]*yaml.Node) { t.Line, t.Column = n.Line, n.Column },
	}
}

func (t *Test) expectSection(f *File) section {
	return section{
		name: "expect", entries: []entry{
			{
				name: "rules", help: "the names of the rules that count the request, in any order; `[]` for none", fill: func() {},
				defaultNote: "not checked", read: func(d *decoder, n *yaml.Node, keyName string) { t.readRules(d, n, keyName, f) },
				schema: func() schema { return anyOf(oneOrMore(textSchema), schema{"type": "array", "maxItems": 0}) },
			},
			newEntry("status", integer[int](200, 599), &t.Status, "", "the status of the answers to the first requests").withDefaultText("as `answer`"),
			newEntry("times", integer[uint64](1, maxTimes), &t.Times, "1", "the number of these first requests"),
			newEntry("then", integer[int](200, 599), &t.Then, "", "the status of the answer to the next request").withDefaultText("not checked"),
		},
		check: func(_ *decoder, _ *yaml.Node, nodes map[string]*yaml.Node) {
			if nodes["status"] == nil {
				t.Status = t.Answer
			}
		},
	}
}

func parseRequestLine(d *decoder, n *yaml.Node, keyName, s string) string {
	a := TestRequest{Line: s}
	if _, err := a.HTTPRequest(); err != nil {
		d.Fail(n, "%s: %v", keyName, err)
	}
	return s
}

func parseClient(d *decoder, n *yaml.Node, keyName, s string) netip.Addr {
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Zone() != "" {
		d.Fail(n, "%s: %s: want an address, such as 203.0.113.7", keyName, yamlfile.Quote(s))
	}
	return addr
}

func readTestHeader(d *decoder, n *yaml.Node, keyName string, dst *http.Header) {
	h := http.Header{}
	*dst = h
	d.nonEmptyPairs(n, keyName, func(key, value *yaml.Node) {
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
				d.Fail(n, "headers %s: %s is not a valid header value", name, yamlfile.Quote(s))
			case name == "Host" && h[name] != nil:
				d.Fail(n, "headers Host: want one")
			default:
				h[name] = append(h[name], s)
			}
		})
	})
}

// readRules reads the names of rules. The rules must have been read before.
func (t *Test) readRules(d *decoder, n *yaml.Node, keyName string, f *File) {
	t.Rules = []string{}
	if l := yamlfile.Target(n); l.Kind == yaml.SequenceNode && len(l.Content) == 0 {
		return // no rule must count the request
	}
	var names []string
	for i := range f.Rules {
		names = append(names, f.Rules[i].Name)
	}
	d.list(n, keyName, func(n *yaml.Node) {
		s, ok := d.text(n, keyName)
		if ok && !slices.Contains(names, s) {
			d.Fail(n, "rules: there is no rule %s%s", yamlfile.Quote(s), didYouMean(s, names))
		}
		t.Rules = append(t.Rules, s)
	})
}
