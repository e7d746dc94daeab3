/*
Package rpclimit limits remote procedure calls with the limiters of package engine. It does not depend on a framework.
Packages grpclimit and grpclimit/connectlimit are the fronts for gRPC and for Connect. They pass each call to this
package.

	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(10), 50))
	...
	set, err := rpclimit.New([]rpclimit.Limit{{Name: "default", Limiter: limiter}})
	...
	server := grpc.NewServer(grpclimit.ServerOptions(set)...)

Each client address has its own bucket. All IPv6 addresses of one /64 share a bucket. A refused call ends as
ResourceExhausted, with the time after which it would pass.

# Which key is charged

A [KeyFunc] returns the key of a call. The default is [Peer], the address of the connection. If the server is behind
proxies, this is the address of a proxy. In that case, name the proxies that write the client's address into the
metadata. The metadata of any other peer is ignored:

	ip, err := httplimit.NewClientIP(httplimit.TrustProxies("10.0.0.0/8"))
	...
	client, err := rpclimit.ClientAddr(ip)
	...
	key, err := rpclimit.MetadataValue("x-api-key", client)

[Join] makes one key from several keys. The keys are the same as in package httplimit. So if both packages share a
limiter, a client has one bucket for HTTP requests and calls together.

# Several limits

A call is checked against every limit that matches it. If one limit refuses, nothing is taken from the others. A limit
whose policy is [engine.Concurrency] bounds the number of calls in flight. A call gives its place back when it ends.

# Costs that are known at the end

A limit with Hold takes an estimate of the cost. The handler gets the hold from [limits.HoldFrom] and settles it when it
knows the cost.

# Streams

A stream counts as one call when it opens. A limit that is given to [Messages] counts every request message. If such a
limit has a MaxWait, a message waits for its tokens. Meanwhile the server reads no further message, so flow control
makes the client wait.

# Clients

In a client, limits apply to the calls that the client makes. If the tokens for a call are not available, the call waits
for them if the limit has a MaxWait. Otherwise the call fails at once. A call counts once, no matter how often the
framework retries it.

# Stability

The API follows semantic versions from v0.1.0 on.
*/
package rpclimit
