/*
Package httplimit limits HTTP requests with the limiters of package engine. A [Middleware] has one or several limits. It
works with net/http and with every router that accepts a func(http.Handler) http.Handler.

	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(10), 50))
	...
	m, err := httplimit.New([]httplimit.Limit{{Name: "default", Limiter: limiter}})
	...
	http.ListenAndServe(":8080", m.Handler(mux))

Each client address has its own bucket; IPv6 clients have one for their /64. Answers say how much is left. A refusal has
the status 429, and says when to come back:

	RateLimit-Policy: "default";q=50;w=5
	RateLimit: "default";r=49;t=1

# Which key is charged

A [KeyFunc] returns the key of a request. The default is [RemoteIP]. Behind proxies the socket's address is the proxy's.
Name the proxies that write the client's address into a header; the header of any other peer is ignored:

	ip, err := httplimit.NewClientIP(httplimit.TrustProxies("10.0.0.0/8"))
	...
	key, err := httplimit.Header("X-API-Key", ip.Key)

[Join] makes one key of several.

# Several limits

A request is checked against every limit that matches it, all or nothing: if one limit refuses, nothing is taken from
the others. The headers list all of these limits and show the tightest; Retry-After is the longest wait. So one
middleware can serve a whole program: give each limit a Match function. Nested middlewares also work, but each takes on
its own, and the headers are those of the inner one.

# Other features

A limit can count requests in flight ([engine.Concurrency]), until their handler returns. It can charge more for some
requests (Cost), be tried out without refusing (Shadow), count only failures (Refund), take an estimate that the handler
settles (Hold, [limits.HoldFrom]), let requests wait for tokens (MaxWait), have tiers (Tier), and keep its state in a
[limits.Source] that several processes share. [Skip] exempts requests, [OnLimited] and [ObserveWith] report,
[RefuseWith] replaces the body of refusals, and [Middleware.Decide] decides without answering.

# Cost

A decision on up to eight limits does not allocate, with any key function of this package. Headers cost two allocations
with the default style and one limit: a string, and the array of values of the http.Header.

# Stability

The API follows semantic versions from v0.1.0 on.
*/
package httplimit
