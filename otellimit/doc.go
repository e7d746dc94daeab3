/*
Package otellimit reports limits to OpenTelemetry.

	registration, err := otellimit.Register(provider, "logins", limiter)
	...
	defer registration.Unregister()

This reports the table of a limiter: keys, room, evictions. The decisions of limits are counted by a [Front], which gets
them from the middleware:

	front, err := otellimit.RegisterHTTP(provider, limits)
	...
	middleware, err := httplimit.New(limits, httplimit.ObserveWith(front))

For gRPC and Connect, use [RegisterRPC] instead. A program that calls the engine directly counts refusals with
[Refusals]. Package otelredis reports limits in Redis or Valkey.

# Cost

All instruments are asynchronous: numbers are read only when they are collected. So [Register] adds no cost to a
request. A [Front] counts one outcome for each limit that applies to a request, without a lock and without an
allocation.

# Names

The names of metrics and attributes are proposed in docs/opentelemetry.md of the repository. They follow the rules for
names in the semantic conventions of OpenTelemetry, which have no names for rate limiting yet. The number of series is
fixed by what is registered, and keys are never attributes.

# Stability

The API and the names of metrics follow semantic versions from v0.1.0 on.
*/
package otellimit
