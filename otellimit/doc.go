/*
Package otellimit has OpenTelemetry report what limits do.

	registration, err := otellimit.Register(provider, "logins", limiter)
	...
	defer registration.Unregister()

reports the table of a limiter: keys, room, evictions. What limits decide is counted by the middleware in front of them:

	front, err := otellimit.RegisterHTTP(provider, limits)
	...
	middleware, err := httplimit.New(limits, httplimit.ObserveWith(front))

The same for gRPC and Connect is [RegisterRPC]. A program that asks the engine itself counts refusals by [Refusals].
Limits in Redis or Valkey are reported by package otelredis.

# Cost

All instruments are asynchronous: numbers are read when they are collected. [Register] adds nothing to a request. A
[Front] adds one count for each limit that a request meets, without a lock and without an allocation.

# Names

The names of metrics and attributes are proposed in docs/opentelemetry.md of the repository; they follow the semantic
conventions of OpenTelemetry, which have none for rate limiting. The number of series is fixed by what is registered,
and keys are never attributes.

# Stability

The API and the names of metrics follow semantic versions from v0.1.0 on.
*/
package otellimit
