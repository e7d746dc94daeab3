/*
Package httplimit limits HTTP requests with the limiters of package engine. A [Middleware] has one or several limits. It
works with net/http and with every router that accepts a func(http.Handler) http.Handler.

	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(10), 50))
	...
	m, err := httplimit.New([]httplimit.Limit{{Name: "default", Limiter: limiter}})
	...
	http.ListenAndServe(":8080", m.Handler(mux))

Each client address has its own bucket; all IPv6 addresses of one /64 share a bucket. Answers have headers about
the tokens left. A refusal has the status 429, and its headers say when to come back. The headers of an admitted request
are, for example:

	RateLimit-Policy: "default";q=50;w=5
	RateLimit: "default";r=49;t=1

# Which key is charged

A [KeyFunc] returns the key of a request. The default is [RemoteIP], the address of the connection. Behind proxies, that
is the address of a proxy. So name the proxies that write the client's address into a header. The header of any other
peer is ignored:

	ip, err := httplimit.NewClientIP(httplimit.TrustProxies("10.0.0.0/8"))
	...
	key, err := httplimit.Header("X-API-Key", ip.Key)

[Join] makes one key from several keys.

# Several limits

A request is checked against every limit that matches it. If one limit refuses, nothing is taken from the others. The
headers list all of these limits, with the numbers of the tightest. Retry-After is the longest wait. One middleware can
serve a complete program: give each limit a Match function. Nested middlewares take their tokens independently, and the
answer has the headers of the inner one.

# Other features

A limit can count requests in flight ([engine.Concurrency]), which last until their handlers return. The fields of a
[Limit] have other features:

  - Cost: some requests cost more
  - Shadow: a limit is tried out and refuses nothing
  - Refund: a limit counts only failures
  - Hold: a limit takes an estimate that the handler settles ([limits.HoldFrom])
  - MaxWait: requests wait for tokens
  - Tier: a limit has tiers
  - Source: several processes share a limit ([limits.Source])

[Skip] exempts requests, [OnLimited] and [ObserveWith] report decisions, [RefuseWith] replaces the body of refusals, and
[Middleware.Decide] decides without answering.

# Cost

A decision on up to eight limits does not allocate, with any key function of this package. Headers cost two allocations
with the default style and one limit: a string, and the array of values of the http.Header.

# Stability

The API follows semantic versions from v0.1.0 on.
*/
package httplimit
