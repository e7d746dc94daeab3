// Package check reads a log of requests and decisions, and reports whether a rate limiter kept its promise. If the
// promise was broken, it reports by how much. The package is exact: it uses integers of 128 bits, no floating point,
// and no tolerance unless the caller sets one.
//
//	report, err := check.Log(check.Limit{Tokens: 10, Per: time.Second, Burst: 20}, check.Bucket, log)
//	...
//	report.Excess // tokens admitted beyond the limit, in the worst of all intervals
//
// # How
//
// A model of the promise follows the log, and is charged with every admitted request, right or wrong. At the instant t,
// the level of a bucket is
//
//	max over all s of (admitted in [s, t]) - rate * (t - s)
//
// in units of token x period. So the highest level minus the burst is the worst excess of all intervals. A refusal is
// wrong if the model had room. A decision costs constant time, but the exact sliding window keeps the requests of one
// window.
//
// # Counterexamples
//
// A [Report] has the shortest part of the log that proves its worst fault:
//
//   - If too much was admitted, admitted requests of one window. Without any one of them, nothing is wrong. Exceptions
//     are the first request of a FixedWindow, and a part with more than a thousand requests.
//   - If a request was refused too early, the refusal and all requests that could still count.
package check
