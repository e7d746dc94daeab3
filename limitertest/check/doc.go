// Package check says, of a log of requests and decisions, how far a rate limiter kept its promise. It is exact:
// integers of 128 bits, no floating point, no tolerance unless the caller sets one.
//
//	report, err := check.Log(check.Limit{Tokens: 10, Per: time.Second, Burst: 20}, check.Bucket, log)
//	...
//	report.Excess // tokens admitted beyond the limit, in the worst of all intervals
//
// # How
//
// A model of the promise runs next to the log. It is charged with what was admitted, whether or not it should have
// been. For a bucket its level is
//
//	max over all s of (admitted in [s, t]) - rate * (t - s)
//
// in units of token x period, so the highest level minus the burst is the excess over every interval. A decision costs
// a constant time. (The exact sliding window keeps the requests of one window.) A refusal is wrong if the model had
// room at that instant.
//
// # Counterexamples
//
// A [Report] has the shortest part of the log that proves its worst fault. For too much admitted, those are admitted
// requests of one window; without any of them nothing would be wrong. For a request refused too early, it is all that
// could still have counted, and the refusal.
package check
