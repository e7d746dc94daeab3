package config

import (
	"net/url"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"
)

// upstream reads a URL, or a mapping with one.
func (d *decoder) upstream(n *yaml.Node) *Upstream {
	u := &Upstream{ConnectTimeout: 10 * time.Second, ResponseTimeout: time.Minute}
	if target(n).Kind != yaml.MappingNode {
		u.URL = d.url(n, "upstream")
		return u
	}
	seen := d.mapping(n, "upstream",
		field{"url", func(n *yaml.Node) { u.URL = d.url(n, "url") }},
		d.durationField("connect_timeout", time.Millisecond, longest, &u.ConnectTimeout),
		d.durationField("response_timeout", 0, longest, &u.ResponseTimeout),
		d.yesField("keep_host", &u.KeepHost),
		d.yesField("h2c", &u.H2C),
		field{"pass_headers", func(n *yaml.Node) {
			d.list(n, "pass_headers", func(n *yaml.Node) { d.passHeader(n, &u.PassHeaders) })
		}},
	)
	if seen != nil && seen["url"] == nil {
		d.fail(n, "upstream: no url: write for example url: http://127.0.0.1:3000")
	}
	if u.H2C && u.URL != nil && u.URL.Scheme == "https" {
		d.fail(seen["h2c"], "h2c: %s speaks HTTP/2 by TLS if it can: leave h2c out, or use http", u.URL)
	}
	return u
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
		d.fail(n, "pass_headers: %s is never passed on as a client sent it", name)
	case slices.Contains(*into, name):
		d.fail(n, "pass_headers: %s is there twice", name)
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
		d.fail(n, "%s: not a URL; %s", what, example)
	case u.Scheme != "http" && u.Scheme != "https":
		d.fail(n, "%s: %s: want a URL that begins with http:// or https://; %s", what, quote(redacted(u)), example)
	case u.Hostname() == "":
		d.fail(n, "%s: %s: the URL has no host; %s", what, quote(redacted(u)), example)
	case u.User != nil:
		d.fail(n, "%s: %s: a user name and password in the URL are not passed on: leave them out", what,
			quote(redacted(u)))
	case u.Fragment != "":
		d.fail(n, "%s: %s: a fragment is never sent to a server: leave the # and what follows out", what,
			quote(redacted(u)))
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
			d.fail(n, "a route without match: want one, or write upstream outside routes for all other requests")
		}
		if seen["upstream"] == nil {
			d.fail(n, "a route without upstream")
		}
		f.Routes = append(f.Routes, r)
	})
}
