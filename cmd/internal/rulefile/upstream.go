package rulefile

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/proxy"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/internal/unixsocket"
)

var upstreams = withReference("upstream", mapping((*Upstream).section))

func (u *Upstream) section() section {
	return section{
		name: "upstream", shorthand: "url", entries: []entry{
			newEntry("url", list(target, checkUnique), &u.Targets, "",
				"`http://` or `https://`, optionally with a path that is put before the path of each request; or "+
					"`unix:/path`, a server on a Unix socket. With a list, each request goes to the server with "+
					"the fewest requests in progress").
				required("write for example url: http://127.0.0.1:3000"),
			newEntry("connect_timeout", duration(time.Millisecond, maxTimeout), &u.ConnectTimeout, "10s", "how long a connection attempt may take"),
			newEntry("response_timeout", duration(0, maxTimeout), &u.ResponseTimeout, "1m", "how long the header of the answer may take; 0s is no bound"),
			newEntry("keep_host", boolean, &u.KeepHost, "", "pass on the client's Host instead of the URL's"),
			newEntry("h2c", boolean, &u.H2C, "", "speak HTTP/2 without TLS, as for gRPC").withRange("`http://` only"),
			newEntry("ignore_client_abort", boolean, &u.IgnoreAbort, "",
				"a request whose client hangs up continues until the server answers, and keeps its place in a "+
					"`concurrency`: for servers that [do not notice it](operations.md#requests-at-a-time)"),
			newEntry("health", optional(mapping(healthSection)), &u.Health, "",
				"a path, such as `/healthz`, or a mapping. weir requests the path from each server. A server is "+
					"down while its answers are not 200 to 399"),
			newEntry("pass_headers", list(passedHeader, checkUnique), &u.PassHeaders, "",
				"names of header fields that are passed on as the client sent them, although they [mislead "+
					"servers](operations.md#what-your-server-sees): `True-Client-IP`, `X_Legacy`"),
		},
		check: u.check,
	}
}

func (u *Upstream) check(d *decoder, _ *yaml.Node, nodes map[string]*yaml.Node) {
	if u.IgnoreAbort && u.ResponseTimeout == 0 {
		d.Fail(nodes["ignore_client_abort"], "ignore_client_abort: with response_timeout: 0s, a request that no one "+
			"waits for could last forever: write a response_timeout")
	}
	for _, t := range u.Targets {
		if u.H2C && t.URL != nil && t.URL.Scheme == "https" {
			d.Fail(nodes["h2c"], "h2c: %s speaks HTTP/2 by TLS if it can: leave h2c out, or use http", t)
		}
	}
}

// checkUnique refuses a value that is already in the list.
func checkUnique[V any](d *decoder, n *yaml.Node, keyName string, before []V, v V) {
	text := fmt.Sprint(v)
	if slices.ContainsFunc(before, func(other V) bool { return fmt.Sprint(other) == text }) {
		d.Fail(n, "%s: %s occurs twice", keyName, yamlfile.Quote(text))
	}
}

// target describes a server of an upstream: its base URL, or unix:/path.
var target = scalar(pattern("http://host:port, https://host or unix:/path", "^([Hh][Tt][Tt][Pp][Ss]?://.+|unix:/.+)$"),
	func(d *decoder, n *yaml.Node, keyName, s string) proxy.Target {
		if path, isSocket := unixsocket.Path(s); isSocket {
			d.socketPath(n, keyName, path)
			return proxy.Target{URL: &url.URL{Scheme: "http", Host: "localhost"}, Socket: path}
		}
		return proxy.Target{URL: d.url(n, keyName, s)}
	})

func healthSection(h *proxy.Health) section {
	path := scalar(pattern("", "^/"), func(d *decoder, n *yaml.Node, keyName, s string) string {
		if u, err := url.ParseRequestURI(s); err != nil || s[0] != '/' || u.Fragment != "" {
			d.Fail(n, "%s: %s: want the path of a health check, such as /healthz", keyName, yamlfile.Quote(s))
		}
		return s
	})
	return section{name: "health", shorthand: "path", entries: []entry{
		newEntry("path", path, &h.Path, "", "the path to request, optionally with a query").required("write for example path: /healthz"),
		newEntry("interval", duration(time.Millisecond, maxTimeout), &h.Interval, "10s", "the time between checks"),
		newEntry("timeout", duration(time.Millisecond, maxTimeout), &h.Timeout, "2s", "how long a check may take"),
		newEntry("passes", integer[int](1, 100), &h.Passes, "2", "how many consecutive successes bring a server back"),
		newEntry("fails", integer[int](1, 100), &h.Fails, "3", "how many consecutive failures take a server out"),
	}}
}

// reservedHeaders has fields that a rule file cannot pass on. weir writes them itself, or they apply only to one
// connection (RFC 9110, section 7.6.1).
var reservedHeaders = []string{
	"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded",
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Upgrade",
	"Http2-Settings",
}

// passedHeader describes the name of a field that is passed on to the upstream.
var passedHeader = scalar(textSchema, func(d *decoder, n *yaml.Node, keyName, s string) string {
	name, ok := d.headerName(n, s)
	if ok && slices.Contains(reservedHeaders, name) {
		d.Fail(n, "%s: %s is never passed on as a client sent it", keyName, name)
	}
	return name
})

func isPort(u *url.URL) bool {
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil && port > 0
}

// url parses the base URL of a server. If the text is not one, it notes a mistake, without a password, and returns nil.
func (d *decoder) url(n *yaml.Node, keyName, s string) *url.URL {
	const example = "write for example http://127.0.0.1:3000"
	u, err := url.Parse(s)
	switch {
	case err != nil:
		d.Fail(n, "%s: not a URL; %s", keyName, example)
	case u.Scheme != "http" && u.Scheme != "https":
		d.Fail(n, "%s: %s: want a URL that begins with http:// or https://; %s", keyName, yamlfile.Quote(redacted(u)), example)
	case u.Hostname() == "":
		d.Fail(n, "%s: %s: the URL has no host; %s", keyName, yamlfile.Quote(redacted(u)), example)
	case !isPort(u):
		d.Fail(n, "%s: %s: the port %s is not valid: want 1 to 65535", keyName, yamlfile.Quote(redacted(u)), u.Port())
	case u.User != nil:
		d.Fail(n, "%s: %s: a user name and password in the URL are not passed on: leave them out", keyName,
			yamlfile.Quote(redacted(u)))
	case u.Fragment != "":
		d.Fail(n, "%s: %s: a fragment is never sent to a server: leave the # and what follows out", keyName,
			yamlfile.Quote(redacted(u)))
	default:
		return u
	}
	return nil
}

func (r *Route) section() section {
	return section{name: "a route", entries: []entry{
		newEntry("match", routeMatches, &r.Match, "", "the requests of the route").
			required("want one, or write upstream outside routes for all other requests"),
		newEntry("upstream", upstreams, &r.Upstream, "", "as above").required("write for example upstream: http://127.0.0.1:3000"),
	}}
}
