// Package limitertest tests whether any rate limiter, from a library or from your own program, keeps its limit.
// Benchmarks do not check this.
//
//	func TestLimiter(t *testing.T) {
//		limitertest.Test(t, limitertest.Config{
//			Promise: limitertest.Bucket,
//			New: func(tb testing.TB, l limitertest.Limit) limitertest.Limiter {
//				return mine{rate.New(l.Tokens, l.Per, l.Burst)}
//			},
//		})
//	}
//
// [Test] compares a limiter with an exact model of its promise (package check). It runs in bubbles of testing/synctest.
// Waiting in a bubble costs no real time. A failure shows a program: a shortest sequence of requests that causes the
// failure. [Check] compares a log of decisions with the same model.
//
// # The subtests
//
//	Burst       while the clock stands still, 8 goroutines together get exactly the burst of each key
//	Bound       random requests at eleven limits, from 5 a week to one a nanosecond, never get more than is allowed
//	Conforming  requests at the first nanosecond at which the limit allows them are not refused
//	Keys        sequential, random, long and unusual keys share no tokens
//	Forget      a drained key stays drained after silence, and after requests for three times Config.Keys
//	Costs       a cost that is 0, negative, above the burst or huge takes all its tokens or none, and adds none
//	Retry       RetryAfter is the first instant at which the request passes
//	Clock       time moves by a nanosecond, by days and by years; callers pass times that go back
//	Cancel      refunds, canceled reservations and canceled waits neither create nor lose tokens (Refund, Reserve,
//	            Wait), even if reservations are canceled in the order in which they were made (Order)
//	Linear      concurrent takes are linearizable (porcupine)
//	Real        16 goroutines in real time, outside of a bubble, stay within the limit, even in the densest interval
//	Leak        no goroutine remains after Cleanup, and the resident memory of idle keys is released
//
// Test skips what a limiter does not promise, and prints what it skips. The reason is an entry in [Config.Skip], a
// method that the Limiter does not have, a limit for which New returns nil, or a RetryAfter below 0.
//
// # Pitfalls
//
//   - In a bubble, only package time has the simulated time. If a limiter reads another clock (the processor's counter,
//     a system call, a linknamed runtime function), Test fails. Set [Config.Outside] for such a limiter.
//   - Goroutines and channels that a package makes only once, in the first bubble, cannot be used in the next bubble.
//     Let the package make them before Test.
//   - Take must not sleep before it admits a request, except for a LeakyQueue. Report the delay as [Decision.Wait].
//   - A finalizer that uses a channel of a bubble ends the process. So Test keeps every limiter alive. If a limiter
//     takes much memory, its adapter should close and drop the limiter in Cleanup.
//   - The timers of a limiter run for real in a bubble: a year of a one-second ticker takes a minute. If timers take
//     long, Test lets less fake time pass, and logs that.
//
// # Benchmark
//
// [Benchmark] compares a limiter, in the rows of weir's own benchmark, with the least work that any limiter must do.
//
// # Cost
//
// Test takes some seconds, and some hundred megabytes of memory for Leak. With -short Leak uses 200,000 keys.
//
// # Stability
//
// The API follows semantic versions from v0.1.0 on. A later version of Test may find more faults.
package limitertest
