/*
Package connectlimit applies the limits of package rpclimit to the calls of Connect handlers and clients. Package
rpclimit describes the limits and the keys of calls.

	set, err := rpclimit.New([]rpclimit.Limit{{Name: "default", Limiter: limiter}})
	...
	path, handler := pingv1connect.NewPingServiceHandler(server, connect.WithInterceptors(connectlimit.New(set)))

A refused call ends as resource_exhausted, in the protocol that the client speaks. Its details are a RetryInfo with the
exact time after which it would pass, and a QuotaFailure with the limits that refused it. Its metadata has Retry-After
in seconds, and Grpc-Retry-Pushback-Ms for the automatic retries of gRPC clients.

In a client, the same interceptor limits its own calls.
*/
package connectlimit
