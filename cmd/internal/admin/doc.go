// Package admin serves the administrator's endpoint: metrics for Prometheus, health and readiness, the state as JSON,
// profiles if the rule file wants them, and a live page, on which a key can be looked at and reset.
//
// New makes an [Admin]. Give it to httplimit as its Metrics and OnLimited callback, serve
// [Admin.Handler] on a listener of its own, and Close it before the server is shut down: open event
// streams end then.
//
// # The cost of a request
//
// Observe finds the rule's counters in a map that is never changed, only replaced, and adds one to a counter on a cache
// line that few other goroutines write. It does not allocate and does not block. Only refusals cost more: they go
// through a sketch that finds the keys refused most (see sketch.go).
//
// # Access
//
// There is no password. A client that reaches the endpoint may see and reset everything, so the endpoint belongs on a
// loopback address. The operator's own browser reaches it, too, and runs the scripts of any site:
//
//   - A Host header with a name other than localhost is refused, so that no name of another site can be pointed at this
//     address (DNS rebinding). An IP address in the Host header cannot be pointed elsewhere and is allowed, and so are
//     the names that the rule file allows, which are the operator's. All names are allowed at /metrics, /healthz and
//     /readyz: they are asked by the name of a service, show no key and change nothing.
//   - Requests that look at a key or reset one are POSTs of JSON from the same origin.
//   - The page loads nothing from other hosts and runs only its own files, as its Content-Security-Policy says. Keys
//     never stand in a URL.
package admin
