/*
Package rpclimit limits remote procedure calls with the limiters of package engine. It does not depend on a framework.
Packages grpclimit and grpclimit/connectlimit are its fronts for gRPC and for Connect, and pass each call to it.

	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(10), 50))
	...
	set, err := rpclimit.New([]rpclimit.Limit{{Name: "default", Limiter: limiter}})
	...
	server := grpc.NewServer(grpclimit.ServerOptions(set)...)

Each client address has its own bucket. IPv6 clients have one for their /64. A refused call ends as ResourceExhausted,
with the time after which it would pass.

# Which key is charged

A [KeyFunc] returns the key of a call. The default is [Peer]. Behind proxies the peer is the proxy. Name the proxies
that write the client's address into the metadata; the metadata of any other peer is ignored:

	ip, err := httplimit.NewClientIP(httplimit.TrustProxies("10.0.0.0/8"))
	...
	client, err := rpclimit.ClientAddr(ip)
	...
	key, err := rpclimit.MetadataValue("x-api-key", client)

[Join] makes one key of several. The keys are the same as in package httplimit: if both packages share a limiter, a
client has one limit for both.

# Several limits

A call is checked against every limit that matches it, all or nothing: if one limit refuses, nothing is taken from the
others. A limit whose limiter is an [engine.Concurrency] bounds the calls in flight. A call gives its place back when it
ends.

# Costs that are known at the end

A limit with Hold takes an estimate. The handler finds the hold with [limits.HoldFrom] and settles it.

# Streams

A stream counts as one call when it opens. A limit given by [Messages] counts every request message. Such a limit may
wait for tokens (MaxWait): the server then reads no further, and flow control makes the client wait.

# Clients

In a client, limits apply to the calls that it makes. With a MaxWait a call waits until its tokens are there; without a
MaxWait it fails at once. A call counts once, however often the framework retries it.

# Stability

The API follows semantic versions from v0.1.0 on.
*/
package rpclimit
