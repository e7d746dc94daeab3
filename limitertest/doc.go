// Package limitertest tests rate limiters: any of them, of any library or of a program's own. It asks what a
// benchmark does not: whether the limit holds.
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
// [Test] holds a limiter against an exact model of what it promises (package check), in testing/synctest bubbles, whose
// time costs nothing. A failure comes with the shortest program that shows it. [Check] holds a log of decisions against
// the same model.
//
// # The subtests
//
//	Burst       at a frozen clock 8 goroutines get the burst of each key, exactly
//	Bound       random requests at eleven limits, from one a day to one a nanosecond: never more than the limit allows
//	Conforming  requests that the limit allows, at the first nanosecond: none is refused
//	Keys        sequential, random, long and odd keys share nothing
//	Forget      a drained key stays drained: after silence, and after three times the planned keys
//	Costs       0, negative, above the burst, huge: all or nothing, nothing minted
//	Retry       RetryAfter is the first instant at which the request passes
//	Clock       steps of a nanosecond, leaps of days and years, and callers with a time of their own that goes back
//	Cancel      refunds, reservations and waits that are canceled mint and lose nothing (parts Refund, Reserve, Wait),
//	            in the order in which they were made, too (Order)
//	Linear      concurrent takes are linearizable (porcupine)
//	Real        16 goroutines outside the bubble stay below the bound in real time
//	Leak        no goroutine stays after Cleanup; idle keys are forgotten, in resident memory too
//
// What a limiter does not promise is skipped and says so: [Config.Skip], a method that its Limiter does not have, a
// limit for which New returns nil, a RetryAfter below 0.
//
// # Pitfalls
//
//   - A bubble's time is that of package time. A limiter that reads a clock in another way is noticed, and fails: set
//     [Config.Outside]. A linknamed runtime function is such a clock, the processor's counter, or a system call.
//   - Goroutines and channels that a package makes once for all, in the first bubble, cannot be used in the next one.
//     Make them before Test.
//   - Take may not sleep for what it then admits, except as a LeakyQueue. Report it as [Decision.Wait].
//   - A finalizer that uses a channel of a bubble ends the process. Test keeps every limiter alive so that none runs.
//     An adapter of one that holds much memory lets go of it in Cleanup, after it was closed.
//   - A timer of a limiter runs for real in a bubble: a year of a ticker of one second takes a minute. Test measures
//     it, lets less fake time pass where that takes long, and logs that.
//
// # Benchmark
//
// [Benchmark] measures a limiter on the rows of weir's own benchmark, each next to the least that any limiter must do.
//
// # Cost
//
// Some seconds, and some hundred megabytes for Leak. With -short Leak has 200,000 keys.
//
// # Stability
//
// The API follows semantic versions from v0.1.0 on. Test may find more in a later version.
package limitertest
