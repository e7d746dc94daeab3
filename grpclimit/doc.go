/*
Package grpclimit holds the calls of gRPC servers and clients to the limits of package rpclimit, which says what limits
there are and which key a call is charged to.

	set, err := rpclimit.New([]rpclimit.Limit{{Name: "default", Limiter: limiter}})
	...
	server := grpc.NewServer(grpclimit.ServerOptions(set)...)

A call that a server refuses ends as ResourceExhausted. Its details are a RetryInfo with the exact time after which it
would pass, and a QuotaFailure that names the limits that refused it. Clients that try again by themselves (a
retryPolicy in their service configuration) get the time by the trailer grpc-retry-pushback-ms; if it is more than a
minute the trailer tells them not to try again. In a server every attempt counts as a call, but for one that never
reached it (a transparent retry).

A call that a client's own limits refuse fails with the same error, before anything is sent.

# Cost

An admitted call allocates nothing, with up to eight limits on the peer's address or the method. A key of metadata costs
an allocation, in which gRPC copies the value. A stream whose messages are counted, whose opening may be given back, or
that is in flight costs one more, and a limit with Hold some.
*/
package grpclimit
