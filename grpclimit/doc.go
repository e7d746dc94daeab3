/*
Package grpclimit limits the calls of gRPC servers and clients with package rpclimit. Package rpclimit describes the
limits and the keys of calls.

	set, err := rpclimit.New([]rpclimit.Limit{{Name: "default", Limiter: limiter}})
	...
	server := grpc.NewServer(grpclimit.ServerOptions(set)...)

A call that a server refuses ends as ResourceExhausted. Its details are a RetryInfo with the exact time after which it
would pass, and a QuotaFailure with the limits that refused it. Clients that retry automatically (retryPolicy in their
service configuration) get the time in the trailer grpc-retry-pushback-ms. If the time is more than a minute, the
trailer says that they must not retry. Every attempt that reaches the server counts as a call. A transparent retry
counts once, because its earlier attempt never reached the server.

A call that a client's own limits refuse fails with the same error, and nothing is sent.

# Cost

An admitted call allocates nothing, with up to eight limits on the peer's address or the method. A key from the metadata
costs one allocation, because gRPC copies the value. A stream costs one more if its messages are counted, its tokens may
be given back, or it counts as in flight. A limit with Hold costs some allocations.
*/
package grpclimit
