// Package limitertest tests any rate limiter, from a library or from your own program. It checks what a benchmark does
// not: whether the limit holds.
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
// [Test] compares a limiter with an exact model of its promise (package check), in testing/synctest bubbles, in which
// waiting costs no real time. A failure comes with the shortest program that shows it. [Check] compares a log of
// decisions with the same model.
//
// # The subtests
//
//	Burst       at a frozen clock 8 goroutines get the burst of each key, exactly
//	Bound       random requests at eleven limits, from 5 a week to one a nanosecond: never more than the limit allows
//	Conforming  requests that the limit allows, at the first nanosecond: none is refused
//	Keys        sequential, random, long and odd keys share nothing
//	Forget      a drained key stays drained: after silence, and after three times the planned keys
//	Costs       0, negative, above the burst, huge: all or nothing, nothing minted
//	Retry       RetryAfter is the first instant at which the request passes
//	Clock       steps of a nanosecond, leaps of days and years, and callers with a time of their own that goes back
//	Cancel      refunds, reservations and waits that are canceled mint and lose nothing (parts Refund, Reserve, Wait),
//	            in the order in which they were made, too (Order)
//	Linear      concurrent takes are linearizable (porcupine)
//	Real        16 goroutines outside the bubble stay below the bound in real time, in the densest interval, too
//	Leak        no goroutine stays after Cleanup; idle keys are forgotten, in resident memory too
//
// Tests of something that a limiter does not promise are skipped, and their output says so. The reason may be
// [Config.Skip], a method that the Limiter does not have, a limit for which New returns nil, or a RetryAfter below 0.
//
// # Pitfalls
//
//   - The time of a bubble is the time of package time. Test notices a limiter that reads another clock (the
//     processor's counter, a system call, or a linknamed runtime function), and fails: set [Config.Outside] for it.
//   - Goroutines and channels that a package makes only once, in the first bubble, cannot be used in the next bubble.
//     Make them before Test.
//   - Take must not sleep before it admits a request, except for a LeakyQueue. Report the delay as [Decision.Wait].
//   - A finalizer that uses a channel of a bubble ends the process. Test keeps every limiter alive so that no finalizer
//     runs. If a limiter holds much memory, its adapter should drop the limiter in Cleanup, after closing it.
//   - A limiter's timers really run in a bubble: a year of a one-second ticker takes a minute. Test measures this, lets
//     less fake time pass if it takes long, and logs that.
//
// # Benchmark
//
// [Benchmark] measures a limiter in the rows of weir's own benchmark, each compared with the least that any limiter
// must do.
//
// # Cost
//
// Test takes some seconds, and some hundred megabytes of memory for Leak. With -short Leak uses 200,000 keys.
//
// # Stability
//
// The API follows semantic versions from v0.1.0 on. Test may find more in a later version.
package limitertest
