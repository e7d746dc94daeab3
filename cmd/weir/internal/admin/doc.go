// Package admin is what the administrator's listener serves: metrics for Prometheus, health and
// readiness, the state as JSON, profiles if asked for, and a live page on which the numbers move and
// one key can be looked at and reset.
//
// New makes an [Admin]. Give it to httplimit as its Metrics and OnLimited callback, serve
// [Admin.Handler] on a listener of its own, and Close it before the server is shut down: open event
// streams end then.
//
// # What a request costs
//
// Observe finds the rule's counters in a map that is never changed, only replaced, and adds one to a
// counter of a cache line that few others write. It does not allocate and waits for nobody. Only
// refusals pay for more: they go through a sketch that finds the keys refused most (see sketch.go).
//
// # Who may ask
//
// Nobody is asked for a password: who reaches the listener may see and reset everything, so it belongs
// on a loopback address. What remains is the operator's own browser, in which any site runs its
// scripts:
//
//   - A Host header with a name other than localhost is refused, so that no name of a stranger can be
//     pointed at this address (DNS rebinding). An address in the Host header is a name that nobody can
//     point elsewhere, and is let through. So are all names at /metrics, /healthz and /readyz, which
//     are asked by the name of a service, hold no key and change nothing.
//   - What looks at a key or resets one is a POST of JSON from the same origin.
//   - The page loads nothing from elsewhere and runs no script that is not one of its files, as its
//     Content-Security-Policy says. Keys never stand in a URL.
package admin
