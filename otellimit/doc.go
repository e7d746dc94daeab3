/*
Package otellimit reports limits to OpenTelemetry.

	registration, err := otellimit.Register(provider, "logins", limiter)
	...
	defer registration.Unregister()

This reports the table of a limiter: keys, room, evictions. A [Front] counts the decisions of a middleware:

	front, err := otellimit.RegisterHTTP(provider, limits)
	...
	middleware, err := httplimit.New(limits, httplimit.ObserveWith(front))

For gRPC and Connect, use [RegisterRPC] instead. A program that calls the engine directly counts refusals with
[Refusals]. Package otelredis reports limits in Redis or Valkey.

# Cost

All instruments are asynchronous, so [Register] adds no cost to a request. A [Front] counts one outcome for each limit
that applies to a request, without a lock or an allocation.

# Names

The names of metrics and attributes are in docs/opentelemetry.md. They follow OpenTelemetry's semantic conventions,
which have no names for rate limiting yet. The number of series depends only on what is registered: keys are never
attributes.

# Stability

The API and the names of metrics follow semantic versions from v0.1.0 on.
*/
package otellimit
