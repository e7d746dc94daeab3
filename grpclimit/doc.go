/*
Package grpclimit limits the calls of gRPC servers and clients with package rpclimit. The documentation of package
rpclimit describes the limits and how the key of a call is chosen.

	set, err := rpclimit.New([]rpclimit.Limit{{Name: "default", Limiter: limiter}})
	...
	server := grpc.NewServer(grpclimit.ServerOptions(set)...)

A call that a server refuses ends as ResourceExhausted. Its details are a RetryInfo with the exact time after which it
would pass, and a QuotaFailure that names the limits that refused it. Clients that retry automatically (with a
retryPolicy in their service configuration) get the time in the trailer grpc-retry-pushback-ms. If the time is more than
a minute, the trailer says that they must not retry. Every attempt that reaches the server counts as a call. A
transparent retry therefore counts once, because its earlier attempt never reached the server.

A call that a client's own limits refuse fails with the same error, before anything is sent.

# Cost

An admitted call allocates nothing, with up to eight limits on the peer's address or the method. A key from the metadata
costs one allocation, because gRPC copies the value. A stream costs one further allocation if its messages are counted,
if its tokens may be given back, or if it counts as in flight. A limit with Hold costs some allocations.
*/
package grpclimit
