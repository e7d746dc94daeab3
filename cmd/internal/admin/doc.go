// Package admin serves the administrator's endpoint: metrics for Prometheus, health and readiness, the state as JSON,
// profiles if the rule file asks for them, and a live page on which an operator can look at a key and reset it.
//
// New makes an [Admin]. Give it to httplimit as its Metrics and OnLimited callback, and serve [Admin.Handler] on a
// separate listener. Call Close before the server is shut down, because Close ends the open event streams.
//
// # The cost of a request
//
// Observe finds the rule's counters in a map that is replaced but never changed, and adds one to a counter. Few other
// goroutines write to the cache line of this counter. Observe does not allocate and does not block. Only refusals cost
// more, because a sketch finds the keys that are refused most (see sketch.go).
//
// # Access
//
// Without [Config.Access], there is no password: a client that reaches the endpoint may see and reset everything, so
// the endpoint belongs on a loopback address. The operator's own browser reaches this address, too, and it runs the
// scripts of any site. Therefore:
//
//   - A Host header with a name other than localhost is refused, because another site could let its own name point at
//     this address (DNS rebinding). An IP address is allowed, because it always means this address. The rule file can
//     allow more names. /metrics, /healthz and /readyz allow all names: they are requested by the name of a service,
//     show no key and change nothing.
//   - Requests that look at a key or reset a key must be POSTs of JSON from the same origin.
//   - The page loads nothing from other hosts and runs only its own files, as its Content-Security-Policy says. A URL
//     never has a key.
package admin
