package rulefile

import (
	"time"

	"github.com/weir-go/weir/limits/spec"
	"go.yaml.in/yaml/v4"
)

// MaxRules is the largest number of rules. At most 64 limits can be checked together, and a request may match every
// rule.
const MaxRules = 64

// maxTimeout is the longest timeout. A longer timeout probably has the wrong unit.
const maxTimeout = 24 * time.Hour

const defaultAddress = "127.0.0.1:8080"

func (f *File) section() section {
	return section{
		name: "the file", help: "A rule file of weir", hasExtensions: true, anyOf: [][]string{{"rules"}, {"redis"}},
		entries: append(f.addressEntries(), f.behaviorEntries()...), check: f.check,
	}
}

// addressEntries returns the entries about listeners, upstreams and client addresses.
func (f *File) addressEntries() []entry {
	return []entry{
		newEntry("listen", list(mapping((*Listener).section), checkAddressFree), &f.Listen, "",
			"one listener or a list of them: an address, or a mapping").
			withDefaultText("`"+defaultAddress+"`, none with `decide` or without rules").withoutDiff().withSummaryLines("listen", func() (lines []string) {
			for _, l := range f.Listen {
				lines = append(lines, l.String())
			}
			return lines
		}),
		newEntry("admin", optional(mapping((*Admin).section)), &f.Admin, "",
			"where metrics and the live page are served, an address or a mapping; no admin listener without it").
			withoutDiff().withSummary("admin", f.Admin.describe),
		newEntry("decide", optional(mapping((*Decide).section)), &f.Decide, "",
			"an address, or a mapping, at which other proxies ask whether a request may pass: see [operations.md](operations.md). "+
				"Every request to it is trusted, so clients must not reach it").
			withRange("needs `trusted_proxies` if a key has `ip`").withoutDiff().withSummary("decide", f.Decide.describe),
		newEntry("redis", optional(mapping((*Redis).section)), &f.Redis, "",
			"an address, or a mapping, at which weir answers Redis clients. Their commands bring the limits: see "+
				"[redis-door.md](redis-door.md). A file with `redis`, but without `listen` and `decide`, needs no "+
				"`rules`").
			withoutDiff().withSummary("redis", f.Redis.describe),
		newEntry("exempt", list(exceptions, nil), &f.Exempt, "",
			"requests to which no rule applies: a list of matches, as below. A request is exempt only without "+
				"doubt: its path must match as written and have only one reading, and every value of a matched "+
				"field must be one of those listed. Do not exempt by something that any client can send, such as a "+
				"header").withSummaryLines("exempt", func() (lines []string) {
			for _, m := range f.Exempt {
				lines = append(lines, m.String())
			}
			return lines
		}),
		newEntry("routes", list(mapping((*Route).section), nil), &f.Routes, "",
			"other servers for some requests: a list, whose first matching route gets a request. Without "+
				"`upstream`, a request that matches no route is answered 404").withSummaryLines("upstream", func() (lines []string) {
			for _, r := range f.Routes {
				lines = append(lines, r.Upstream.String()+" for "+r.Match.String())
			}
			return lines
		}),
		newEntry("upstream", optional(upstreams), &f.Upstream, "",
			"the server that requests go to, or several: a URL, a list of them, or a mapping").
			withDefaultText("the built-in echo").withSummary("upstream", f.describeUpstream),
		newEntry("trusted_proxies", list(prefix, nil), &f.TrustedProxies, "",
			"addresses and ranges of the proxies whose headers about the client are trusted"),
		newEntry("client_ip", mapping((*ClientIP).section), &f.ClientIP, "",
			"where to find the client's address, and how many of its bits count").withDefaultText("the connection's").
			withSummary("client", func() string {
				if f.RedisAlone() {
					return ""
				}
				return f.ClientIP.describe(len(f.TrustedProxies))
			}),
		newEntry("store", optional(mapping((*Store).section)), &f.Store, "",
			"a Redis (7 or later) or Valkey that keeps the limits of several machines: a URL, or a mapping. With "+
				"`on_loss: closed` it must answer when weir starts; otherwise weir starts without it and connects [when "+
				"it answers](operations.md#several-machines)").withSummary("store", f.Store.describe),
	}
}

// behaviorEntries returns the entries about what weir does.
func (f *File) behaviorEntries() []entry {
	return []entry{
		newEntry("ambiguous_paths", words(AmbiguousMatch, AmbiguousRefuse), &f.AmbiguousPaths, string(AmbiguousMatch),
			"what happens to a request whose path servers read in different ways, such as `/a%2fb`, `/a//b`, "+
				"`/a;x`, `/%2e/a` or `/%6c`: `match` applies the rules for every reading, `refuse` answers 400").
			withSummary("paths", func() string {
				return textIf(f.AmbiguousPaths == AmbiguousRefuse, "400 to what can be read in several ways")
			}),
		newEntry("headers", words(HeadersIETF, HeadersLegacy, HeadersDraft06, HeadersBoth, HeadersNone), &f.Headers, string(HeadersIETF),
			"which header fields report limits to clients: `ietf` (RateLimit, RateLimit-Policy, as in "+
				"draft-ietf-httpapi-ratelimit-headers-10), `legacy` (X-RateLimit-...), `draft-06` (RateLimit-Limit, ...), `both` "+
				"(`ietf` and `legacy`) or `none`. Every refusal has Retry-After"),
		newEntry("response", mapping((*Response).section), &f.Response, "", "how refusals are answered").withDefaultText("as below").
			withSummary("answer", func() string {
				refusals := f.Response.Refusal.String()
				return textIf(!f.RedisAlone(), "headers "+string(f.Headers)+", body "+string(f.Response.Body)+
					textIf(refusals != "", "; refusals: "+refusals))
			}),
		newEntry("cors", optional(mapping((*CORS).section)), &f.CORS, "", "which pages of other origins may read answers").
			withDefaultText("none: the upstream decides").withSummary("cors", f.CORS.describe),
		newEntry("server", mapping((*Server).section), &f.Server, "", "bounds on connections, times and sizes").withDefaultText("as below"),
		newEntry("log", mapping((*Log).section), &f.Log, "", "which events are logged, and in which form").withDefaultText("as below"),
		newEntry("state", scalar(pattern("", "^/"), parseState), &f.State, "",
			"a folder on this machine for files that keep the counts of limits. They outlive the process, so a "+
				"restart gives no key a fresh bucket. Processes with the same rules share them. What is owed to a "+
				"`store` is kept there, too. The folder must exist. See [shared.md](shared.md#weir-serve)").
			withDefaultText("none: counts are lost when the process ends").withRange("the full path"),
		newEntry("rules", f.rulesKind(), &f.Rules, "", "the limits, at least one").
			withDefaultText("none: required, unless there is only `redis`").withRange("1 to 64").withoutDiff(),
		newEntry("tests", f.testsKind(), &f.Tests, "",
			"requests with their expected answers: see [Tests](#tests). A list of mappings, as below").withRange("up to 1000").withoutDiff(),
	}
}

// check refuses parts of the file that do not fit together. It also sets values that depend on several parts.
func (f *File) check(d *decoder, n *yaml.Node, nodes map[string]*yaml.Node) {
	if _, ok := nodes["rules"]; !ok && !f.RedisAlone() {
		d.Fail(n, "no rules: want at least one under rules")
	}
	if len(f.Listen) == 0 && f.Decide == nil && (f.Redis == nil || nodes["rules"] != nil) {
		f.Listen = []Listener{{Address: defaultAddress}}
	}
	if d.proxyProtocolNode != nil && len(f.TrustedProxies) == 0 {
		d.Fail(d.proxyProtocolNode, "proxy_protocol needs trusted_proxies: any client can send the header, so only theirs is read")
	}
	f.ClientIP.check(d, nodes["client_ip"], len(f.TrustedProxies) > 0)
	d.checkAddressesFree(f, nodes)
	d.checkDecide(f, nodes["decide"])
	d.checkInFlight(f)
	d.checkSettled(f)
	d.checkState(f, nodes["state"])
}

// describeUpstream says where requests that match no route are passed.
func (f *File) describeUpstream() string {
	switch {
	case f.RedisAlone():
		return ""
	case f.Upstream != nil:
		return f.Upstream.String()
	case f.Echo():
		return "the built-in echo"
	}
	return "none for other requests: they are answered 404"
}

func (r *Response) section() section {
	s := r.Refusal.section()
	s.entries = append([]entry{
		newEntry("body", words(BodyProblem, BodyJSON), &r.Body, string(BodyProblem), "`problem` (application/problem+json, RFC 9457) or `json`"),
		newEntry("retry_jitter", seconds(spec.MaxJitter, ", because Retry-After is"), &r.RetryJitter, "0s",
			"a random time up to this is added to Retry-After"),
	}, s.entries...)
	return s
}

func (s *Server) section() section {
	return section{name: "server", entries: []entry{
		newEntry("read_header_timeout", duration(time.Millisecond, maxTimeout), &s.ReadHeaderTimeout, "10s", "how long the "+
			"header of a request may take to arrive"),
		newEntry("read_timeout", duration(0, maxTimeout), &s.ReadTimeout, "0s", "how long a whole request may take to arrive; 0s is no bound"),
		newEntry("write_timeout", duration(0, maxTimeout), &s.WriteTimeout, "0s", "how long sending a whole answer may take; 0s is no bound"),
		newEntry("idle_timeout", duration(time.Millisecond, maxTimeout), &s.IdleTimeout, "2m", "how long a connection may wait for its next request"),
		newEntry("shutdown_timeout", duration(0, maxTimeout), &s.ShutdownTimeout, "10s",
			"how long requests in progress may take when weir stops. In the time that is left, weir charges a "+
				"`store` for the requests that it admitted while the store was lost. After an upgrade, an idle "+
				"connection may get one more answer within half of this time"),
		newEntry("shutdown_delay", duration(0, maxTimeout), &s.ShutdownDelay, "0s",
			"how long weir continues to serve requests before it stops. Meanwhile `/readyz` answers 503, so that "+
				"load balancers notice, and each answer is the last one on its connection. An "+
				"[upgrade](operations.md#upgrades) does not wait"),
		newEntry("max_header_bytes", size(1<<10, 16<<20), &s.MaxHeaderBytes, "64KiB", "the largest header of a request, such as `64KiB`"),
		newEntry("max_connections", connections(ByOpenFiles), &s.MaxConnections, "",
			"how many connections all listeners for clients may have together; further ones are answered 503; 0 is "+
				"no bound. When fewer than a sixteenth are free, each new connection closes the one that has been idle for longest").
			withDefaultText("[half of the open files](operations.md#timeouts-and-sizes)"),
		newEntry("max_connections_per_client", connections(ByShare), &s.MaxConnectionsPerClient, "",
			"how many connections one address, or one IPv6 /64, may have at `listen`; further ones are answered "+
				"503; 0 is no bound. `trusted_proxies` and Unix sockets have no such bound. With `proxy_protocol`, the client in the header counts").
			withDefaultText("an eighth of `max_connections`, at least 16"),
		newEntry("send_timeout", duration(0, maxTimeout), &s.SendTimeout, "1m",
			"how long a client may accept nothing of an answer before weir cuts it off; 0s is no bound. Over "+
				"HTTP/1, each accepted byte starts the time again. Over HTTP/2, only 16 KiB or the rest of the "+
				"answer do; otherwise weir resets the stream"),
		newEntry("max_waiting", integer[int](1, 1<<20), &s.MaxWaiting, "1000",
			"how many requests of all rules together may wait for tokens at a time (`max_wait`). An eighth of them "+
				"may wait for one key. Further ones are refused at once"),
		newEntry("min_body_rate", size(0, 1<<30), &s.MinBodyRate, "240",
			"the bytes a second at which the body of a request must arrive on average, after its first ten "+
				"seconds; 0 is no bound. A body that arrives faster may pause later, for at most a minute. gRPC "+
				"has no such bound, because its streams may be silent"),
	}}
}

// connections describes a number of connections.
func connections(defaultValue int) kind[int] {
	k := integer[int](0, 1<<30)
	k.fill = func(dst *int) { *dst = defaultValue }
	return k
}
