/*
Package connectlimit holds the calls of Connect handlers and clients to the limits of package rpclimit, which says what
limits there are and which key a call is charged to.

	set, err := rpclimit.New([]rpclimit.Limit{{Name: "default", Limiter: limiter}})
	...
	path, handler := pingv1connect.NewPingServiceHandler(server, connect.WithInterceptors(connectlimit.New(set)))

A refused call ends as resource_exhausted, in the protocol that the client speaks. Its details are a RetryInfo with the
exact time after which it would pass, and a QuotaFailure that names the limits that refused it; its metadata has
Retry-After in seconds, and for the retries of gRPC clients Grpc-Retry-Pushback-Ms.

In a client the same interceptor holds back its own calls.
*/
package connectlimit
