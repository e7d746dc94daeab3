// Package shard holds the table. It maps the fingerprint of a key to the slot that holds the key's bucket, and decides
// when a key gets and loses a slot. It does not know the text of keys, and it has no clock of its own.
//
// This comment is the protocol. The code refers to its rules by number. doc_shared.go has R17 to R23, R26, R28 and R29,
// about tables of several processes, quotas and windows of the clock. doc_examples.go has an example of each long rule.
//
// # Glossary
//
//	slot           16 bytes: a state word and a key word
//	line           a cache line: four slots
//	shard          an array of lines with its own counters
//	home slot      the slot at which the search for a key starts
//	home           the line of the home slot
//	order          the position of the home slot in its line, 0 to 3
//	probe window   the 32 slots that a search for a key may visit: eight lines, of which the home is the first.
//	               Slot i of the window is slot i XOR order from the start of the home. Behind its last home a shard
//	               has the lines that complete that home's window
//	probe bound    how many slots of the probe window may hold a live record of a home's keys (R11)
//	stride         an eighth of the probe window. Probe bounds are counted in strides
//	record         a slot that holds a key's bucket, and the slot's ring or prices if the algorithm has them
//	ring           the words of a slot that hold the times of a sliding log's requests (R10)
//	price          what one token cost, in ticks, when the record was last charged (R27)
//	fingerprint    the 64-bit hash of a key, without the four bits in which the key word holds the tier (R24)
//	label          the content of a key word: a fingerprint and a tier
//	tenure         the time from one claim of a slot to the next claim
//	version        seven bits of the state word (R3)
//	transition     a change of a state word: a method of atomicbucket.Word
//	page           256 slots, the usual size of a memory page (R12)
//	plan           an algorithm, and a quota for each tier. It can be replaced (R9)
//	quota          the limit of a call: the limit of a tier of the plan, or numbers that the call brings
//	unit           identifies the scale in which the numbers of a quota are given (R13)
//	tick           the unit of time of a plan's algorithm, in which payloads count
//	bucket         the content of a payload, whatever the algorithm
//	debt           what a bucket lacks until it is full
//	idle           a record is idle when its bucket is full
//	entry          in R10: a word of a ring. In R26: three words of a shared table that say which process has what
//	               in flight
//	window         the interval of time over which an algorithm counts
//	watermark      a time that has certainly been reached. It never falls (R7)
//	circle         the range of a payload, whose numbers wrap around modulo 2^54
//	skew           the largest distance of two times that one call may compare: a sixteenth of the circle
//	trust          in a shared table, how far a call's clock may be ahead of the watermark before the call checks the
//	               machine's clock: 15 s, or the skew if that is less (R23)
//
// # Why a table this simple is enough
//
// For a limiter, a key with a full bucket and a key without a bucket are the same. So an idle record may be replaced in
// place by another key's record. Nothing is copied, the table never grows, and no memory is freed while another
// goroutine reads it. But the word that is compared and swapped must identify the tenure.
//
// # The words of a slot
//
// The key word holds the label. Its fingerprint is written only under CLAIM, by the goroutine that claimed the slot.
//
// The state word decides who owns the slot. It has a tag, a version and a payload (see package atomicbucket). The tags:
//
//	0      The slot was never used since New. A search ends here.
//	FREE   The slot has no owner. The content of the key word is meaningless.
//	CLAIM  One goroutine owns the slot and is writing the key word. In a table of several processes the payload
//	       says which process.
//	TENT   Tentative: the key word is valid. It is undecided whether this is the key's only record. No take is
//	       charged to it.
//	LIVE   The key's record. The payload is the bucket. LIVE' is the same under another plan.
//
//	           claim                publish          commit, with a take
//	0, FREE ------------> CLAIM ------------> TENT ----------------------> LIVE --.
//	  ^                     ^                   |                          |  ^   | move:
//	  |                     '-------------------|--------------------------'  '---' a take
//	  |                          claim: idle, or evicted                   |
//	  '-----------------------------------------'--------------------------'
//	                     abort                        free: idle, or reset
//
// # A take
//
//	hit     Search for the key's LIVE record. If it has the tokens, take them by one compare-and-swap (move). If it
//	        does not, refuse and write nothing.
//	insert  If there is no record: claim a slot of the probe window that is free, never used or idle; write the key;
//	        publish the record as TENT; settle it. Slots without a record are preferred, then the record that has
//	        been idle longest, because its key is least likely to come back.
//	settle  Extend the probe bound of the home to the record, and search for other records of the key. If there is
//	        none, commit, which also charges the take. Otherwise abort and start over. A call that meets a TENT of
//	        its own key settles it in the same way, with its own take.
//
// If the probe window has no slot to claim, the overflow policy decides. An eviction takes the live record with the
// least debt. With token buckets the search of the insert has already found that record.
//
// # The rules, each with what breaks without it
//
// R1. A call reads the state of a slot before its key. If its compare-and-swap from that state succeeds, the slot did
// not change hands in between, so the call charges the key that it read. In the other order, the state could belong to
// the slot's next owner, and the call would charge another key.
//
// R2. A call that writes nothing, such as a refusal, reads the state a second time. Its answer counts only if the state
// has not changed, and takes effect at that second read. Without this read, state and key could belong to two tenures,
// and another key's bucket could refuse the call.
//
// R3. Each claim changes the version, and the fingerprint is written only under CLAIM, before TENT. Without the
// version, a compare-and-swap that was prepared in one tenure could succeed in a later one. If the key were written
// after TENT, a call could settle the record under the previous owner's label.
//
// The version also changes at a conversion (R9, R27), and at a refund that takes something out of a log (R10). It
// changes at a refund of a token bucket, too, with one exception: the first refund of a take after which nothing else
// was taken (TokenBucket.Refund).
//
// R4. An insert publishes first and searches second. If two goroutines insert one key at the same time, both publish
// before they search. Go's atomics are sequentially consistent, so at least one of them sees the other's record. If
// both searched first, the key could get two records and twice the burst.
//
// R5. A search for the key's own record ends at the first slot that was never used or at the probe bound (R11), and
// nowhere else. No record of the key lies further on: claims visit the slots in the same order, the order of the key,
// and take none beyond the first slot that was never used. A used slot never becomes unused again. A search skips FREE
// slots and slots of other keys. If it stopped there, it would miss a record further on, and the key would be inserted
// twice. (Hit may stop anywhere, because it then leaves the decision to another call.)
//
// R6. If a key has two records, one of them wins: a LIVE record over a TENT record, and of two TENT records the one
// with the lower index. The loser is aborted by its own goroutine or by the winner's. (R7 and R9 abort tentative
// records without a winner.) Commits and aborts are compare-and-swaps from the same word, so each tentative record has
// exactly one outcome. If the winner's goroutine fails to abort the loser, the loser was decided in the meantime, so
// the goroutine searches again. A search skips a slot in CLAIM: its claimer will publish, then search, and see the
// record of this search (R4). If the lower record did not abort the higher one, the higher one could have searched
// before the lower one was published, and both would commit.
//
// R7. A record is forgotten as idle, by a claim or by a sweep, only if it is idle at the watermark. A commit reads the
// watermark after the search that found no record. Its bucket starts full at the watermark or at the time of the take,
// whichever is later. A take whose time is before the watermark is decided at the watermark.
//
// The reason is that a goroutine can be suspended after it has read its clock. Meanwhile the key's record may become
// idle and be forgotten. Without the watermark, the goroutine would find no record and start a full bucket at its own
// time, in the past, and the same interval of time would refill the key twice. For the same reason a peek or a refund
// reads the watermark after its search. If the watermark has passed the time for which it would answer, it starts over.
// Otherwise it could report a key as full too early.
//
// If a record became idle after the watermark, a claim of this record first moves the watermark: to the moment at which
// the record became idle, if the payload shows it to the nanosecond, otherwise to the time of the claim. (With the
// earlier time, the ranks of claims still distinguish the other idle records.)
//
// A refund by the limiter's clock (RefundBy) reads the clock after the record, and starts over if the state has changed
// since. So no take of the record is later than the refund. Otherwise tokens could first come back with time, then be
// taken by a later request, and then be given back once more by a suspended refund.
//
// The watermark also bounds how far apart two ticks can be when a call subtracts them modulo 2^54. A call whose clock
// is more than a skew ahead of the watermark first moves the watermark to its clock. If the watermark is already more
// than a skew ahead of the last complete sweep, the call sweeps first. A move by more than four skews (a leap) is made
// in steps. Each step is at most four skews, plus any number of whole turns of the circle. After such a step, every
// record that is idle in truth also looks idle on the circle.
//
// A sweep reads the watermark after each state. The record's last take cannot be far ahead of that time, so the sweep
// judges the record correctly. A sweep also aborts tentative records: the call that is about to commit such a record
// read the watermark earlier, and would start a bucket at that time. A record that is published during the sweep may
// still be committed. The watermark is then ahead of the commit by at most one skew and one step of four skews. These
// five skews are still judged correctly.
//
// The skew by which steps are measured is the pace, a word that is read at each step. While a plan is replaced, records
// follow two plans with different circles. So the pace is the smaller skew, and steps include no whole turns. A step by
// the larger skew could take an idle record once around its circle, so that it looks indebted.
//
// In a table of one process, a call may still be about to make a larger step by the previous pace. So calls that may
// move the watermark are counted. If there is such a call when the pace has been set, the replacement moves the
// watermark by one nanosecond, and the call's compare-and-swap fails. In a table of several processes, the pace is the
// skew of the current plan, read while no replacement is under way. There a replacement moves the watermark itself
// (R22).
//
// SweepEpoch leaves records that have been idle for less than a skew, so that keys that come back find them. If more
// than half of the slots hold a record, it also frees records that were idle at the last complete sweep. A payload is
// recognized as past for thirteen skews; a record that stays idle for longer would look indebted again. A record that a
// sweep leaves has been idle for one skew at most. It is visited again at most five skews later: a step is at most four
// skews, and before a step the watermark is at most one skew ahead of the last complete sweep. A call may be one skew
// ahead of the watermark, and a refund may move the time at which the record became idle back by two. So a record is
// idle for at most nine skews.
//
// A time that a caller supplies ahead of the limiter's clock applies only to the decision of this call. The watermark
// follows only the clock, so a record that is idle only at the supplied time is not forgotten. (But the call may charge
// a record ahead of the watermark, by at most a skew.)
//
// R8. The call that commits a record is charged: the commit writes LIVE together with the bucket after the call's own
// take. If a second compare-and-swap charged the take, other calls could drain the bucket in between, each time. If the
// commit of another call charged the claimer's take, the claimer would find its record committed, and could not know
// whether its own take was admitted.
//
// R9. A call reads the plan after the state to which it applies the plan, because the plan may be replaced at any time.
// The tag of a record (LIVE or LIVE') says which of two plans it follows: the current one or the previous one. There
// are never three, because one replacement ends before the next begins. A call that meets a record of the previous plan
// converts it. The replacement converts all records, and aborts tentative ones, so that no call can commit by a plan
// that it read earlier. If a state and the plan that was read after it agree, they belong together. Otherwise the slot
// no longer holds that state, and the compare-and-swap fails. Because a plan may be changed and changed back, a
// conversion changes the version. Without this rule a call would read a bucket by the numbers of another plan.
//
// A conversion preserves at least the tokens that the key has taken (R24). Consider any interval, and a bucket with the
// highest limit and the highest rate of that interval. The key's debt in tokens is at least the debt of such a bucket.
// So whatever plans follow each other, the key gets at most what such a bucket would grant. An idle record owes no
// tokens by any plan, so it may be forgotten whatever plan comes next.
//
// R10. The last change of a sliding log, a request or a refund, is stored only in the state. The next call that changes
// the state first enters that change in the ring. A request is one entry for each of its tokens. A refund keeps some of
// the newest entries and marks all others as gone, the oldest first. So if an entry is gone, all entries behind it are
// gone, too. To change an entry, a call reads the entry, reads the state again, and then makes a compare-and-swap of
// the entry. So the state cannot change before the entries of its last change are made.
//
// An entry never returns to an earlier value. A tenure starts by clearing the ring under CLAIM, with its version; ticks
// only grow within a version; and a refund changes the version. So a compare-and-swap that was prepared for a past
// state or tenure fails. If an entry were made after the next change, or by a plain store, a late call could overwrite
// a new tick with an old one, and a request would leave the window too early. If a refund were made in the ring instead
// of the state, a late call could remove a request of another key.
//
// A refund by a receipt removes the oldest ticks by its change of the state. It then exchanges these ticks, one by one,
// for the ticks of its own take. If windows were longer before, the ring may also have ticks that have left the window.
// Any refund removes such ticks first, and exchanges them for the oldest ticks of the window. (If they fill the ring,
// older ticks may have been overwritten, so nothing is given back.) An exchange makes an entry older, but never older
// than it will be in the end, and it stops when the version has changed. So at every moment any window holds at least
// as many requests as it should. If an exchange makes room while another call decides on a refusal, the other call
// decides again.
//
// R11. A live record is within the probe bound of its home, and a search for a key's record ends at that bound. The
// first stride is always within the bound. A call that settles a record beyond the bound extends the bound to the
// record's slot, then searches. The search reads the bound when it has finished the first stride. So "publish" in R4
// means: publish and extend.
//
// A home has two bounds, and the larger one counts. Published records extend one of them, the target. A call reads
// which one is the target after it has published its record. One sweep at a time lowers probe bounds: it switches the
// target, visits every slot, aborts TENT records (R7), extends the target for LIVE records, and then clears the other
// bound. If a call read the target before the switch, the sweep visits its record. If it read the target after, it
// extends the bound that is not cleared. A sweep that stops early clears nothing, and the next one continues with the
// same target: if it switched again, the other bound would never be cleared.
//
// If a call extended the bound before it published the record, a whole sweep could clear the bound in between. If only
// the claimer extended the bound, another call could commit the record first. Either way searches would miss a live
// record, and the key would get a second one. If settle extended the bound after its search, two inserts could miss
// each other.
//
// R12. A page is marked before a slot in it is claimed for the first time, and so before a record there is published.
// Sweeps and replacements of the plan skip unmarked pages. A record that is published there later is treated like one
// in a slot that the sweep has already visited (R7, R9, R11). Marks are permanent, because a used slot never becomes
// unused again (R5). If a page were marked after the record is published, a live record could be skipped: it would grow
// older than the circle, follow an old plan, or lose its probe bound. If the page were marked after the claim, a
// claimer that dies in between would leave a slot that sweeps skip (R17).
//
// R13. A quota with its own numbers names the unit of those numbers. A call compares this unit with the unit of the
// plan that the state follows (R9), and a quota of another unit grants nothing. A unit belongs to one table. A new plan
// keeps the unit if the numbers mean the same. Without this rule a limit could be applied in ticks of another length,
// or to a payload that has no room for it. Judging a record needs no quota, because the payload says when the bucket is
// full, whatever a token cost.
//
// R14. A charge takes as many tokens as fit under a bound, even if the bucket does not have them. The bound is a
// multiple of the limit, as far as the payload has room: at most two skews for a bucket, so that R7 holds. A charge is
// one compare-and-swap like any take, and the first charge of a key is part of its commit (R8).
//
// The charge for a refusal is one step with the refusal, from the state that refused. If it were a second step, tokens
// could come back in between, and a request that the bucket can admit would be charged as refused. (Any state refuses a
// request for more than the limit, so that charge may be a separate step.) A take with a least and a most number of
// tokens compares the least with the state from which it takes; otherwise it could take less than the least.
//
// R15. A refund gives back tokens of its own take, and nothing else. The record alone does not always show whether it
// still includes the take, so a refund also reads words outside the record, after the record.
//
// A receipt belongs to a take of one tenure. If the tenure ends because the record is idle, everything that it owed has
// come back with time. A record of a later tenure shows this: the time at which the take's tokens were back, or its
// window, or its tick, is past. The record does not show whether a tenure was ended by force, by a reset or an
// eviction. So forced ends are counted, in one word for a group of homes. An end counts as begun before the
// compare-and-swap that makes it, and as under way until after that. A call that wants a receipt reads this word before
// it takes, and a refund reads it after the record. If an end was under way at the take, or one has begun since,
// nothing is given back. Because homes share the word, this may be less than possible, but never more.
//
// If an end were counted only after it is made, a refund could see the next tenure and no count. If an end stopped
// counting as under way before it is made, a take of the old tenure could treat the end as past. (The end then fails
// because of the take, unless a refund of another take restores the state.) If the call read the word after its take,
// it would miss an end in between. A call's own evictions end before its take, so its receipt counts them as past;
// otherwise every such receipt would be void.
//
// A receipt also names the plan of its take, by a number that is unique in the table. After a conversion (R9) the share
// of a single take is unknown, so a receipt of an earlier plan is void. Logs are the exception: a conversion does not
// change their requests.
//
// A bucket may be, to the bit, what the take left. Then every later take in it has been given back, because within a
// version the payload grows by takes and falls only by refunds of the latest take. So the refund makes the bucket what
// it would be if the take had taken less. That is right at any time, and no clock is read.
//
// Three other buckets could look the same: of another tenure, of another plan, or of a later turn of the circle. The
// receipt excludes the first two as above. (There is one gap: if an earlier take of the tenure was given back, a later
// tenure may reach the same tick. Then only the version distinguishes the tenures, and in another slot the version is
// the same in one of 128 cases.) The third is impossible if the watermark, read after the record, is at most a skew
// later than the take. The reason is that no take is more than a skew ahead of the watermark, and a take of the next
// turn would be at least 14 skews later. Without this check, a refund could forgive a later take.
//
// A later take has used the tokens that came back with time before it. So a refund is calculated at a time that is not
// before any take of the record. That is the refund's own time, read from the clock after the record (R7). If a request
// ahead of its clock was granted at a later time, the latest such time counts instead. The call that grants such a
// request records that time before its compare-and-swap.
//
// R16. A receipt of tokens in flight stays valid, for its whole cost, after a change of the plan or the limit, and
// after a forced end of another key's tenure. Otherwise tokens that no longer belong to any caller would stay in flight
// for as long as they are remembered. So the record, not R15, decides to which tenure the receipt belongs. Its payload
// holds how many forced ends nearby had begun when the record was committed, modulo 2^16. The commit reads this number
// after the search that found no record. So the number includes an end that made room for the commit, and not the end
// of this tenure. Tokens that were never given back are counted by the call whose compare-and-swap drops them, after
// that compare-and-swap.
//
// R25. A reservation is due at the end of its wait, and all tokens that are taken or due fit the limit. That means:
// over any time t, the takes, each at its time, and the reservations, each when it is due, without what was given back,
// are at most the limit plus what comes back in t. A bucket holds only the tick at which it is full, so this must
// follow from that tick: the debt at any time is at least what was taken for that time or later.
//
// A take or a reservation adds its cost at all times. A refund may subtract only as much as keeps this true. For times
// up to its own take, that is the cost of the take. For a later time, it is what the bucket would owe then by that take
// alone, because the rest of the debt may have been taken for that time. So a refund is calculated at the latest time
// at which a reservation nearby is due, if that is later than the time of R15. A call that grants a reservation records
// the end of its wait before its compare-and-swap, and a refund reads that time after the state. If a refund were
// calculated at its own time, it could give back tokens at the time for which others have reserved.
//
// There is one exception. If nothing else was taken since, a refund of a take, or of a part of it, makes the bucket
// what it would be if the take had taken less. That is right at any time, so no clock is read. (Earlier refunds of this
// kind, of the same take, do not matter.) So the last reservation in line can be given back in whole or in part. A
// reservation in the middle gives back only what the line behind it does not need, because the payload cannot represent
// a gap.
//
// R24. A conversion uses the numbers of the record's own tier. Four bits of the key word name the tier under which the
// key last took, or say that the key took under a quota with its own numbers. (Without prices, R27, a token of such a
// quota costs the same as under tier 0.) A call under another tier first writes its own tier to the key word, by a
// compare-and-swap of the key's own label, and then takes. So a call that reads the state after that take, and then the
// key word, finds the tier of the take or of a later request. The key was under that tier before the plan changed. Hit
// compares the whole key word, and leaves other tiers to the calls that write the tier. Searches compare the
// fingerprint only. Without the tier, or if it were written after the take, a conversion could scale a debt by the
// numbers of another tier, and forgive or multiply it.
//
// A record may be charged for times after its conversion: by requests ahead of their clock, by reservations that are
// due later, and by requests that read their clock while a replacement is suspended after it has read its own. So a
// conversion counts the owed tokens at two times. Each time gives a tick at which the bucket is full, and the later
// tick counts: that of the first time if the new rate is slower, and that of the second if it is faster.
//
//   - The first time is the watermark, because no later call is decided before it. With this time alone, tokens that
//     were taken for a later time would have come back by that time.
//   - The second is the latest time for which the record may have been charged. If the record owes nothing by the
//     previous plan from an earlier moment on, that moment counts instead.
//
// The latest time is the maximum of three. The first is the latest at which a request ahead of its clock was granted.
// The second is the latest until which a reservation nearby waits. (Both are read after the state: R15.) The third is a
// time of the clock that the first converting call read while the new plan was current. (A request decided by the
// previous plan read its clock before the plan.)
//
// A key may owe more at the watermark than any limit that it ever had (R28 says which limits count), because of
// reservations or charges. Until the latest reservation nearby is due, that excess takes as long to come back as
// before. The bucket then grants only what a higher limit adds to the highest previous one. If the excess became tokens
// of a slower rate, the next caller would wait longer than those before it. If only the current limit counted, what was
// taken under a higher limit would be forgiven.
//
// Records of windows preserve the tokens that were taken in a window, whatever the tier. If windows become shorter, a
// window still lasts until its tokens have come back under the limit that the key has then. That may be any limit, so
// the lowest limit of all tiers counts, or one token if a quota was ever made (Largest, R28). The time is at most the
// longest window since New. It counts from the latest time (see above): counted from the watermark, tokens that were
// taken ahead of the watermark would come back sooner. If windows ended with the new length, limits of 1000 per hour
// and 20 per minute in turn would admit 1000 per minute.
//
// R27. If a table has limits with several rates, it preserves the tokens that a key has taken. A payload is a time, and
// only the price of a token converts it to tokens. So a record has two words with prices: one for even versions, one
// for odd ones. A call with another price sees the same number of tokens at its own price, rounded up. If it is
// admitted, the compare-and-swap of its take writes the payload at its own price, with the next version.
//
// Before that, the call offers its price for that version. It reads the other price word, reads the state again, and
// then makes a compare-and-swap of that price word. So the price word of the record's current version never changes. (A
// record leaves version v only when the word of version v+1 holds an offer. A late call that would replace this offer
// read another value of the word before it read a state of version v, so it fails.) A past state does not return:
// within a version tokens are only taken, and here every refund changes the version.
//
// An offer holds twelve bits of the state for which it was made; an offer for another state with the same bits is
// equally valid. A call that finds an offer for the state that it has read uses the offered price for its own take, so
// no two calls can block each other. It counts the record's debt as a call with that price does, at both times (see
// below), and adds its own tokens. If it counted the debt at its own time alone, tokens that are taken for a later time
// would be forgiven. If the record has no room for its debt at that price, the call adds a tick to the payload, so the
// offer is for another state. (There is one gap. While a call is suspended in its offer, others can reach a state with
// the same twelve bits, one of 4096, and use the offer before the call overwrites it. This changes a record's price.)
//
// A record is committed at the price of the call that claimed it. If a call with another price settles it, that call
// commits a full bucket and starts over. Hit ignores tables with prices. HitQuota and HitTier read the state, then the
// price, and compare the two. Without prices, 100 tokens taken at 100/s would count as one token of 1/s, so such a
// table accepts only one price. If the price were written after the state, or by a plain store, a debt could be read at
// a price at which it was not charged.
//
// A debt comes back at the price of its record. A refused request leaves the price unchanged, unless its own price is
// lower: then it converts the record to its price and takes nothing. So does a refused reservation, or a charge of
// which no token fits. Otherwise a key under a fast quota would wait for a slow token.
//
// Tokens are counted at two times, as in R24:
//
//   - If the new price is higher, at the earliest time at which a later call may be decided: the time of the call's
//     clock. The call first moves the watermark there, unless the record is idle by the watermark. So no late call
//     counts, at the higher price, tokens that came back at the lower one.
//   - If the new price is lower, at the latest time for which the record may have been charged: the maximum of the
//     first two times of R24 and the time of the clock, which is read after the state.
//
// A debt may be larger at a price than a record has room for. A call with that price then sees, at its own time, as
// much debt as the largest limit, and is refused. If the debt were cut off at the earlier time, it would look smaller
// to a call ahead of its clock.
//
// A replacement of the plan offers prices in ticks of the next plan. So a call that meets another call's offer reads
// the plan afterwards, and starts over if it decides by another plan. A replacement that meets such an offer adds a
// tick to the payload. Otherwise a price could be read in ticks of another plan, and a debt would come back at a rate
// that no limit has.
//
// A replacement also converts the price of a record. The record gets the new price of the tier that the key word names,
// if it has the old price of that tier and has room for its tokens at the new one. Then no part of the debt counts as
// above all limits of the key (R24), since it may be tokens of another tier, or of a quota. If such a part kept its
// time, a change of a slow tier would forgive what was taken under another tier.
//
// In all other cases, the record owes the same time at the same price: a plan has room for the debt of any quota, or
// the replacement is refused. Cutting a debt off would forgive it.
//
// A refund counts in tokens of the record. A receipt with the record's version has the record's price, unless the
// version has come round after 128 changes of the price (R15). In that case the refund may also give back what has come
// back with time since the take, but in all no more than the receipt is for, once. For a receipt of another version,
// tokens count as having come back since the take at the lowest, and so fastest, price of all conversions of the table.
// A word holds that lowest price, and is written before each conversion.
//
// # Why it is right
//
// One record for each key (I3). A record becomes LIVE only by a commit. Consider two records of one key, in slots a and
// b. Let a be the first to be published and within its bound (R11). The search of b's commit came after b was published
// (R4), and so after a was. If a was decided by then, either a was LIVE and b aborts, or a had been forgotten and b is
// the only record. If a was TENT, the higher one is aborted (R6): either b, or a by b. If b fails to abort a, a is LIVE
// by now, and b aborts itself.
//
// Charged once, to its own key (I2). A hit is one compare-and-swap from a state that was read before the key (R1). A
// commit is one compare-and-swap and includes its own take (R8).
//
// Never above the limit of the call (I1). Within a tenure the payload rises only by takes that the bucket admits and by
// charges (R14), and falls only by refunds. Between two tenures of a key the record was idle at the watermark, and the
// next tenure starts no earlier than the watermark (R7): the payload is what it would be if the record had stayed.
// Evictions are the exception, and they are counted.
//
// A refusal writes nothing (I4), unless the plan charges for refusals (R14). A key that is refused already has a
// record, since a full bucket admits every cost up to the burst.
//
// Lock-free (I5). No call waits for CLAIM: searches skip it. Any call can settle TENT. If any other compare-and-swap
// fails, another call has succeeded: with a take, a commit, a claim, an extended or cleared bound, or an abort (by a
// sweep, or in favor of a record that stays or of another key's record that has just taken the slot).
//
// A goroutine that stops forever inside a claim costs one slot. If it stops inside a sweep, probe bounds are no longer
// lowered. Both last at most until a sweep after the death of its process (R17, R18). The next call that meets an
// unfinished replacement of the plan completes it (R22). A process that stops in the first three steps of a replacement
// keeps others from replacing the plan, and blocks nothing else.
//
// # Time and memory
//
// A hit usually costs one cache line, and 1.34 lines on average if 0.6 of the table is live records. An insert searches
// twice more, up to the probe bound: one or two lines, if a sweep has run since the table was last fuller. Nothing is
// allocated after New, slots hold no pointers, and large tables lie outside the Go heap. No call waits for the sweeper
// (Sweep), which counts records, lowers probe bounds, and frees idle records before they are older than the circle
// allows.
//
// # Stability
//
// This package is exported because other modules of this repository need it. It may change in any release.
package shard
