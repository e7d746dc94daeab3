/*
Package rpclimit limits remote procedure calls with the limiters of package engine. It does not depend on a framework:
packages grpclimit and grpclimit/connectlimit pass it the calls of gRPC and of Connect.

	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(10), 50))
	...
	set, err := rpclimit.New([]rpclimit.Limit{{Name: "default", Limiter: limiter}})
	...
	server := grpc.NewServer(grpclimit.ServerOptions(set)...)

Each client address has its own bucket; all IPv6 addresses of one /64 share a bucket. A refused call ends as
ResourceExhausted, with the time after which it would pass.

# Which key is charged

A [KeyFunc] returns the key of a call. The default is [Peer], the address of the connection. Behind proxies, this is the
address of a proxy. So name the proxies that write the client's address into the metadata. The metadata of any other
peer is ignored:

	ip, err := httplimit.NewClientIP(httplimit.TrustProxies("10.0.0.0/8"))
	...
	client, err := rpclimit.ClientAddr(ip)
	...
	key, err := rpclimit.MetadataValue("x-api-key", client)

[Join] makes one key from several keys. Keys are the same as in package httplimit: if both packages share a limiter, a
client has one bucket for HTTP requests and calls.

# Several limits

A call is checked against every limit that matches it. If one limit refuses, nothing is taken from the others. A limit
with [engine.Concurrency] bounds the number of calls in flight. A call gives its place back when it ends.

# Costs that are known at the end

A limit with Hold takes an estimate. The handler settles it ([limits.HoldFrom]) when it knows the cost.

# Streams

A stream counts as one call when it opens. The limits of [Messages] count every request message. If such a limit has a
MaxWait, a message waits for its tokens. Meanwhile the server reads no further message, so flow control makes the client
wait.

# Clients

In a client, limits apply to its own calls. Without tokens, a call waits if the limit has a MaxWait, and otherwise fails
at once. A call counts once, however often the framework retries it.

# Stability

The API follows semantic versions from v0.1.0 on.
*/
package rpclimit
