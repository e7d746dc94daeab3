package config

import (
	"net/url"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/internal/unixsocket"
)

// upstream reads a URL, a list of them, or a mapping with them.
func (d *decoder) upstream(n *yaml.Node) *Upstream {
	u := &Upstream{
		ConnectTimeout: 10 * time.Second, ResponseTimeout: time.Minute,
	}
	if yamlfile.Target(n).Kind != yaml.MappingNode {
		d.targets(n, "upstream", u)
		return u
	}
	seen := d.mapping(n, "upstream",
		field{"url", func(n *yaml.Node) { d.targets(n, "url", u) }},
		d.durationField("connect_timeout", time.Millisecond, longest, &u.ConnectTimeout),
		d.durationField("response_timeout", 0, longest, &u.ResponseTimeout),
		d.yesField("keep_host", &u.KeepHost),
		d.yesField("h2c", &u.H2C),
		d.yesField("ignore_client_abort", &u.IgnoreAbort),
		field{"health", func(n *yaml.Node) { u.Health = d.health(n) }},
		field{"pass_headers", func(n *yaml.Node) {
			d.list(n, "pass_headers", func(n *yaml.Node) { d.passHeader(n, &u.PassHeaders) })
		}},
	)
	if seen != nil && seen["url"] == nil {
		d.Fail(n, "upstream: no url: write for example url: http://127.0.0.1:3000")
	}
	if u.IgnoreAbort && u.ResponseTimeout == 0 {
		d.Fail(seen["ignore_client_abort"], "ignore_client_abort: with response_timeout: 0s a request that nobody waits for "+
			"could last for ever: write a response_timeout")
	}
	for _, t := range u.Targets {
		if u.H2C && t.URL.Scheme == "https" {
			d.Fail(seen["h2c"], "h2c: %s speaks HTTP/2 by TLS if it can: leave h2c out, or use http", t)
		}
	}
	return u
}

// targets reads the URLs of the servers of an upstream.
func (d *decoder) targets(n *yaml.Node, what string, u *Upstream) {
	d.list(n, what, func(n *yaml.Node) {
		t, ok := d.target(n, what)
		if !ok {
			return
		}
		if slices.ContainsFunc(u.Targets, func(other Target) bool { return other.String() == t.String() }) {
			d.Fail(n, "%s: %s is there twice", what, yamlfile.Quote(t.String()))
		}
		u.Targets = append(u.Targets, t)
	})
}

// target reads the base URL of a server, or unix:/path.
func (d *decoder) target(n *yaml.Node, what string) (t Target, ok bool) {
	if path, isSocket := unixsocket.Path(yamlfile.Target(n).Value); isSocket {
		before := len(d.Errors)
		d.socketPath(n, what, path)
		return Target{URL: &url.URL{Scheme: "http", Host: "localhost"}, Socket: path}, len(d.Errors) == before
	}
	t.URL = d.url(n, what)
	return t, t.URL != nil
}

// health reads a path, or a mapping with one.
func (d *decoder) health(n *yaml.Node) *Health {
	h := &Health{Interval: 10 * time.Second, Timeout: 2 * time.Second, Passes: 2, Fails: 3}
	path := field{"path", func(n *yaml.Node) {
		s, ok := d.text(n, "path")
		if u, err := url.ParseRequestURI(s); ok && (err != nil || s[0] != '/' || u.Fragment != "") {
			d.Fail(n, "path: %s: want the path of a page that says whether the server is well, such as /healthz", yamlfile.Quote(s))
		}
		h.Path = s
	}}
	if yamlfile.Target(n).Kind != yaml.MappingNode {
		path.read(n)
		return h
	}
	seen := d.mapping(n, "health", path,
		d.durationField("interval", time.Millisecond, longest, &h.Interval),
		d.durationField("timeout", time.Millisecond, longest, &h.Timeout),
		d.integerField("passes", 1, 100, &h.Passes),
		d.integerField("fails", 1, 100, &h.Fails),
	)
	if seen != nil {
		d.need(n, seen, "health: no %s: write for example path: /healthz", "path")
	}
	return h
}

// ownHeaders are the fields that weir writes itself, and those that end at each connection (RFC 9110, section 7.6.1).
var ownHeaders = []string{
	"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded",
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Upgrade",
	"Http2-Settings",
}

// passHeader reads the name of a field that is passed on to the upstream.
func (d *decoder) passHeader(n *yaml.Node, into *[]string) {
	s, ok := d.text(n, "pass_headers")
	if !ok {
		return
	}
	name, ok := d.headerName(n, s)
	switch {
	case !ok:
	case slices.Contains(ownHeaders, name):
		d.Fail(n, "pass_headers: %s is never passed on as a client sent it", name)
	case slices.Contains(*into, name):
		d.Fail(n, "pass_headers: %s is there twice", name)
	default:
		*into = append(*into, name)
	}
}

// url reads the base URL of a server; nil if it is not one. A password in it is not repeated.
func (d *decoder) url(n *yaml.Node, what string) *url.URL {
	s, ok := d.text(n, what)
	if !ok {
		return nil
	}
	const example = "write for example http://127.0.0.1:3000"
	u, err := url.Parse(s)
	switch {
	case err != nil:
		d.Fail(n, "%s: not a URL; %s", what, example)
	case u.Scheme != "http" && u.Scheme != "https":
		d.Fail(n, "%s: %s: want a URL that begins with http:// or https://; %s", what, yamlfile.Quote(redacted(u)), example)
	case u.Hostname() == "":
		d.Fail(n, "%s: %s: the URL has no host; %s", what, yamlfile.Quote(redacted(u)), example)
	case u.User != nil:
		d.Fail(n, "%s: %s: a user name and password in the URL are not passed on: leave them out", what,
			yamlfile.Quote(redacted(u)))
	case u.Fragment != "":
		d.Fail(n, "%s: %s: a fragment is never sent to a server: leave the # and what follows out", what,
			yamlfile.Quote(redacted(u)))
	default:
		return u
	}
	return nil
}

func (d *decoder) routes(n *yaml.Node, f *File) {
	d.list(n, "routes", func(n *yaml.Node) {
		var r Route
		seen := d.mapping(n, "a route",
			field{"match", func(n *yaml.Node) { r.Match = d.match(n) }},
			field{"upstream", func(n *yaml.Node) {
				if u := d.upstream(n); u != nil {
					r.Upstream = *u
				}
			}},
		)
		if seen == nil {
			return
		}
		if seen["match"] == nil {
			d.Fail(n, "a route without match: want one, or write upstream outside routes for all other requests")
		}
		if seen["upstream"] == nil {
			d.Fail(n, "a route without upstream")
		}
		f.Routes = append(f.Routes, r)
	})
}
