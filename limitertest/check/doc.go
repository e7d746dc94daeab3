// Package check reads a log of requests and decisions. It reports whether a rate limiter kept its promise. If the
// limiter did not, it reports by how much the promise was broken. The package is exact: it uses integers of 128 bits,
// no floating point, and no tolerance unless the caller sets one.
//
//	report, err := check.Log(check.Limit{Tokens: 10, Per: time.Second, Burst: 20}, check.Bucket, log)
//	...
//	report.Excess // tokens admitted beyond the limit, in the worst of all intervals
//
// # How
//
// A model of the promise follows the log. It is charged with every admitted request, whether or not the request should
// have been admitted. At the instant t, the level of a bucket is
//
//	max over all s of (admitted in [s, t]) - rate * (t - s)
//
// in units of token x period. So the highest level minus the burst is the worst excess of all intervals. A decision
// costs constant time. (The exact sliding window keeps the requests of one window.) A refusal is wrong if the model had
// room at that instant.
//
// # Counterexamples
//
// A [Report] has the shortest part of the log that proves its worst fault. If too much was admitted, this part consists
// of admitted requests of one window. If any one of these requests is removed, nothing is wrong. If a request was
// refused too early, this part consists of all requests that could still count, and the refusal.
package check
