// Package admin serves the administrator's endpoint. It has metrics for Prometheus, health and readiness, the state as
// JSON, and profiles if wanted. It also has a live page on which an operator looks at keys and resets them.
//
// Give an [Admin] to httplimit as its Metrics and OnLimited callback, and serve [Admin.Handler] on a separate listener.
// Call Close before the server shuts down, because Close ends the event streams.
//
// # The cost of a request
//
// Observe finds the counters of a rule in a map that never changes. It then adds one to a counter. Few other goroutines
// write to the cache line of this counter. Observe does not allocate or block. A refusal costs more, because a sketch
// finds the most refused keys (sketch.go).
//
// # Access
//
// Without [Config.Access], any client that reaches the endpoint may see and reset everything. So the endpoint belongs
// on a loopback address. The operator's browser also reaches this address, and runs the scripts of any site. Therefore:
//
//   - A Host header must have an IP address, localhost, or a name that the rule file allows. Otherwise another site
//     could let its own name point at this address (DNS rebinding). /metrics, /healthz and /readyz allow every name,
//     because other machines ask for them by the name of a service. They show no key and change nothing.
//   - A request that shows or resets a key must be a POST of JSON from the same origin.
//   - The page loads nothing from other hosts and runs only its own files, as its Content-Security-Policy says. A URL
//     never has a key.
package admin
