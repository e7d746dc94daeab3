// Package atomicbucket holds the two things of weir that are a matter of one
// 64-bit word: the state word that owns a slot of the table, and the bucket
// that lives in its payload. It knows numbers and ticks. It knows no key, no
// hash, no table and no clock.
//
// # The state word
//
//	 63  61 60      54 53                                             0
//	+------+----------+-----------------------------------------------+
//	| tag  | version  | payload                                       |
//	+------+----------+-----------------------------------------------+
//
// tag says what the slot is and which goroutine may do what with it (see [Tag]). It is the only field that ever decides
// ownership.
//
// version changes, by one modulo 128, with each tenure of the slot ([Word.Claim]), and with each conversion and those
// refunds that could otherwise be mistaken for another change ([Word.Convert]). A compare-and-swap that was
// prepared against an earlier tenure therefore fails, even where tag and
// payload look the same again. (To fool it, a goroutine would have to be held up
// between its load and its compare-and-swap for exactly 128, 256, ... claims of that
// slot, and find the same payload again to the bit; of a tentative record, whose
// payload is zero, the first alone.)
//
// payload is the bucket while the slot is live, and zero otherwise.
//
// # The transitions
//
// Every change of a state word is one of these methods; nothing else writes
// one. C marks the transition on which correctness rests, H a hint that could be
// left out.
//
//	transition  from              to                 made by
//	Claim       never used, FREE  CLAIM, version+1   any call                    C
//	Claim       LIVE              CLAIM, version+1   any call, if idle, or by
//	                                                 eviction (counted)          C
//	Publish     CLAIM             TENT               the claimer only            C
//	Commit      TENT              LIVE               any call, with its own take C
//	Abort       TENT              FREE               any call, after a search;
//	                                                 a sweep, a change of plan   C
//	Move        LIVE              LIVE               any call: a take or refund  C
//	Convert     LIVE, LIVE'       either, version+1  any call, when the plan has
//	                                                 been changed; a refund of a
//	                                                 log, or beside others       C
//	Free        LIVE              FREE               the sweeper, if idle; Reset H
//
// # The algorithms
//
// What the payload means, and how a take changes it, is an [Algorithm]. [TokenBucket] is the
// token bucket in its virtual scheduling form, known as
// the generic cell rate algorithm (ITU-T I.371, 1993). Tokens and timestamp are
// one number, the theoretical arrival time: the instant at which the bucket
// will be full again. Time is counted in token ticks, a fixed fraction of a
// token, so that costs are whole numbers and no rounding ever accumulates. A bucket that is
// refilled in batches is the same with a clock that goes in steps. [FixedWindow],
// [SlidingWindow], [SlidingLog] and [Concurrency] pack a time and counts into the payload.
//
// # Stability
//
// This package is exported because other modules of this repository need it. It may change in any release.
package atomicbucket
