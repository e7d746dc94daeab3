// Package atomicbucket has the two parts of weir that fit into one 64-bit word: the state word that owns a slot of the
// table, and the bucket in the payload of that word. It knows numbers and ticks. It does not know keys, hashes, the
// table or clocks.
//
// # The state word
//
//	 63  61 60      54 53                                             0
//	+------+----------+-----------------------------------------------+
//	| tag  | version  | payload                                       |
//	+------+----------+-----------------------------------------------+
//
// tag says what the slot is and which goroutine may change it (see [Tag]). It is the only field that decides who owns
// the slot.
//
// version is a counter modulo 128. It changes with each new tenure of the slot ([Word.Claim]), with each conversion,
// and with each refund that could otherwise be mistaken for another change ([Word.Convert]). So a compare-and-swap that
// was prepared in an earlier tenure fails, even if tag and payload look the same. There is one gap: while a goroutine
// is suspended between its load and its compare-and-swap, the slot is claimed exactly 128, 256, ... times, and then has
// exactly the same payload. (The payload of a tentative record is always zero, so for that record such a number of
// claims is enough.)
//
// payload is the bucket while the slot is live. While the slot is claimed, it is the number of the claimant. Otherwise
// it is zero.
//
// # The transitions
//
// Only these methods of [Word] change a state word. Correctness depends on the transitions marked C. Those
// marked H are optional.
//
//	transition  from              to                 made by
//	Claim       never used, FREE  CLAIM, version+1   any call                    C
//	Claim       LIVE              CLAIM, version+1   any call, if idle, or by
//	                                                 eviction (counted)          C
//	Publish     CLAIM             TENT               the claimer only            C
//	Abandon     CLAIM             FREE               the sweeper, if the claimer
//	                                                 is dead                     H
//	Commit      TENT              LIVE               any call, with its own take C
//	Abort       TENT              FREE               any call, after a search;
//	                                                 a sweep, a change of plan   C
//	Move        LIVE              LIVE               any call: a take or refund  C
//	Convert     LIVE, LIVE'       either, version+1  any call, when the plan has
//	                                                 been changed; a refund of a
//	                                                 log, or behind other takes  C
//	Free        LIVE              FREE               the sweeper, if idle; Reset H
//
// # The algorithms
//
// An [Algorithm] defines what the payload means and how a take changes it. [TokenBucket] is the token bucket in its
// virtual scheduling form, known as the generic cell rate algorithm (ITU-T I.371, 1993). Tokens and timestamp are one
// number, the theoretical arrival time: the instant at which the bucket will be full again. Time is counted in ticks,
// each a fixed fraction of a token, so costs are whole numbers and no rounding accumulates. A bucket that is refilled
// in batches is the same algorithm with a clock that advances in steps. [FixedWindow], [SlidingWindow], [SlidingLog]
// and [Concurrency] pack a time and counts into the payload.
//
// # Stability
//
// This package is exported because other modules of this repository need it. It may change in any release.
package atomicbucket
