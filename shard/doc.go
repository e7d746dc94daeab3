// Package shard holds the table: where a key's bucket is, how it gets a slot and how it loses it. It knows
// fingerprints and state words. It knows no key text, no policy, no clock.
//
// This comment is the protocol. The code refers to its rules by number. Rules R17 to R23, R26 and R28, which are about
// several processes and quotas, are in doc_shared.go. An example of each long rule is in doc_examples.go.
//
// # Glossary
//
//	slot           16 bytes: the words state and key
//	line           a cache line: four slots
//	shard          an array of lines, with counters of its own
//	home slot      the slot at which the search for a key begins
//	home, order    the line of the home slot, and which slot of that line it is, 0 to 3
//	probe window   the 32 slots, eight lines from the home on, that a search may visit: number i is slot i XOR order.
//	               There is no wrap-around; a shard ends with one probe window more than it has homes
//	probe bound    how far from its home a key's record can lie (R11)
//	stride         an eighth of the probe window, the unit of probe bounds
//	record         a slot that holds a key's bucket; with the ring or the prices behind it, if the algorithm has them
//	price          what a token cost, in ticks, when a record was last charged (R27)
//	fingerprint    the 64-bit hash of a key, without the four bits that are the place of a tier (R24)
//	label          what a key word says: a fingerprint and a tier
//	tenure         the time from one claim of a slot to the next
//	version        seven bits of the state: see R3 for what changes them
//	transition     a named change of a state word; atomicbucket.Word has a method for each
//	page           256 slots, as much as the system gives at a time; the first record in it marks it (R12)
//	quota          the limit of a call: a tier of the plan, or numbers of its own
//	unit           what the numbers of a quota mean (R13)
//	plan           an algorithm with the quotas of its tiers; LIVE and LIVE' tell the records of two plans apart
//	bucket         what a payload holds, whatever the algorithm
//	debt           what a bucket lacks to be full
//	idle           a key is idle when its bucket is full
//	entry          three words that say who has what in flight, in a shared table (R26)
//	window         a stretch of time, of an algorithm
//	watermark      a time that has certainly been reached; it only grows (R7)
//	skew           how far apart two times may be that meet in one call: a sixteenth of the payload's circle
//	trust          how far the clock of a call may be ahead of the watermark in a shared table: 15 s, or the skew if
//	               that is less (R23)
//	circle         the payload's numbers, which go round
//
// # Why it can be this simple
//
// For a limiter an idle bucket and no bucket are the same thing. So a slot whose record is idle may be given to
// another key in place: nothing is lost, nothing needs to be copied, the table never grows, and no memory is freed
// while another goroutine reads it. All that is needed is that the word which is compared and swapped says whose
// tenure it is.
//
// # The words of a slot
//
// key is the label. Its fingerprint is written by the goroutine that claimed the slot, while the state is CLAIM, and
// at no other time.
//
// state owns the slot: tag, version, payload (see package atomicbucket).
//
//	0      never used since New. A search ends here.
//	FREE   no owner. The key word means nothing.
//	CLAIM  one goroutine owns the slot and is writing the key word. The payload says of which process, in a
//	       table of several.
//	TENT   tentative: the key word is valid; whether this is the key's only
//	       record is not yet decided. No take is charged to it.
//	LIVE   the key's record. payload = the bucket. LIVE' is the same under another plan.
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
//	hit     Search for the key's LIVE record. Found: refuse (write nothing), or move
//	        the bucket by one compare-and-swap.
//	insert  None: claim a slot of the probe window that is free, never used or idle;
//	        write the key; publish it as TENT; settle. A slot without a record goes
//	        before an idle one, and a record that has been idle for longer before
//	        others: its key may come back, and then finds it.
//	settle  Extend the probe bound of the home to the record, and search for other
//	        records of the same key. None: commit, which charges the take. Otherwise
//	        abort, and begin again. A call that meets a TENT of its own key settles it
//	        in the same way, with its own take.
//
// If the probe window has no slot to claim, the overflow policy decides. An eviction takes the live record that owes
// the least. Of token buckets the insert has found it by its one search.
//
// # The rules, each with what breaks without it
//
// R1. A state is read before the key that belongs to it. A compare-and-swap that succeeds from that state proves that
// the slot did not change hands in between, so the key read is the key charged. The other way round, the key could be
// the last owner's and the state the next one's: a take charged to a stranger.
//
// R2. A refusal, and any other answer that writes nothing, reads the state once more, and stands only if it has not
// changed. That read is the moment of the answer. Without it the state may be one tenure's and the key another's: a
// key refused on a stranger's bucket.
//
// R3. The version changes at every claim, and the key is written under CLAIM only, before TENT. (It changes at every
// conversion, too: R9; at every refund that takes something out of a log: R10; and at a refund of a token bucket, but
// the first of a take that nothing came behind: see TokenBucket.Refund.) Without the version, a compare-and-swap
// prepared in an earlier tenure could succeed in a later one. With the key written after TENT, a record could be
// found, and settled, under the label of the slot's last owner.
//
// R4. Publish, then search. Two goroutines that insert one key at once both publish before they search, and Go's
// atomics are sequentially consistent, so at least one sees the other. If both searched first, neither would: two
// records, twice the burst.
//
// R5. A search ends at a slot that was never used. A search for the key's own record ends there or at the probe bound
// (R11), and nowhere else. (Hit, which decides only if it can, may end anywhere.) A claim takes a slot up to there,
// and a used slot is never unused again, so no record of the key is further on. Both go by the order of the key. FREE
// slots, and slots of others, are passed: a record behind one of them would be lost from sight, and inserted twice.
//
// R6. Of two records of one key the LIVE one stays, and of two TENT ones the one with the lower index. The one that
// must go is aborted by its own goroutine or killed by the other's. Commit, abort and kill are compare-and-swaps from
// the same word, so each tentative record has one fate. (A replacement of the plan, R9, and a sweep, R7, abort it as
// well, without another record that stays.) A kill that fails has met a record that was decided meanwhile,
// so the search begins again. CLAIM is passed: its goroutine will publish, then search, and see this record (R4). If
// the lower one did not kill the higher one, the higher could have searched before the lower was published, and both
// would commit.
//
// R7. Forgetting follows the watermark. A record is forgotten as idle (by a claim or by a sweep) only if it is idle at
// the watermark. A claim of a record that became idle later moves the watermark there first: to that moment if the
// record tells it to the nanosecond, so that records that became idle later can still be told apart, else to the time
// of the claim. A commit starts the new bucket full at the watermark or at the take's own time, whichever is later,
// and reads the watermark after the search that found no record. A take whose time is before the watermark is decided
// at the watermark. Without this a goroutine whose clock is late could find a record forgotten which at its own time
// was not yet idle, and start a full bucket in the past: it would be refilled twice for the same stretch of time.
// (Clocks do differ: a goroutine can be suspended between its clock and its search.) For the same reason a peek or a
// refund reads the watermark after its search, and begins again if it has passed the time that it would answer for: it
// would call a key without a record full at a time when it was not yet.
//
// A refund by the limiter's clock (RefundBy) reads the clock after the record, and begins again if the state has
// changed since. So no take that the record was charged with is later than the refund. Else a goroutine that is
// suspended after its clock would give back what has come back by itself before another take, and forgive that take.
//
// The watermark also bounds how far apart two ticks can be that meet in a subtraction modulo 2^54, the payload's
// circle. A call whose clock is further ahead of it than the skew first moves the watermark there. Before the
// watermark moves on from where it is more than a skew ahead of the last complete sweep, the call that moves it
// sweeps. A leap of more than four skews is made in steps of four and any number of whole turns, which makes idle on
// the circle what is idle in truth. A sweep reads the watermark after each state, so it judges by a time that the
// record's last take cannot have been far ahead of. And a sweep aborts what is tentative: the call that is about to
// commit it has read the watermark before, and would give the key a record of that time. A call that commits
// nonetheless is overtaken by one step of four skews at most, after a sweep that began before its record was
// published, and so by five in all: its record is seen for what it is.
//
// Skews here are those of a pace, which is read at each step, not of the plan by which a call found out how far to go.
// While the plan is replaced it is the smaller skew of the two, and no step has turns, since records follow both and
// their circles differ. With steps of another plan's skew a record would go once around its circle unseen, and look
// indebted when it is idle. In a table of one process the pace is a word. A call that has read it before could still
// make a step of the larger skew. So calls that may be about to are counted, and if there is one when the pace has
// been set, the watermark is moved by a nanosecond: then that call's compare-and-swap fails. In a table of several
// processes the pace is the skew of the present plan, read when no replacement is under way, and a replacement moves
// the watermark itself (R22).
//
// A sweep may leave idle records, so that keys that come back find them (SweepEpoch): those that were not idle at the
// last complete sweep, and have not been idle for a skew. The next complete sweep meets such a record after five more
// skews at the latest, because the watermark moves by up to four once it is within one of the last complete sweep. A
// call may be one ahead of the watermark, and a refund may set the time at which the record became idle back by two.
// That is nine of the thirteen skews in which a bucket is seen to be past. If sweeps left records for longer, these
// would look indebted again.
//
// The time of a call may be ahead of its clock, if a caller supplied it. It is that of the call's own decision. The
// watermark follows the clock alone, so nothing is forgotten that is idle only at the call's own time, and no other
// call is decided by it. (A record may then have been charged ahead of the watermark, by no more than the skew.)
//
// R8. The call that commits is charged. The commit writes LIVE together with the bucket after its take. If it wrote a
// full bucket, to be charged by a second compare-and-swap, others could drain it in between for ever. If it charged
// the claimer's take, a claimer that finds its record committed could not know whether it was admitted.
//
// R9. A plan is read after the state that it is applied to. The plan may be replaced while the table is used. Records
// say by their tag (LIVE or LIVE') which of two plans they follow, the present one or the previous one. There are
// never three, because one replacement ends before the next begins. A call that meets a record of the previous plan
// converts it. The replacement converts all records, and aborts what is tentative, so that no call can commit by a
// plan that it read before. A state and a plan that was read after it, and that agree, are right for each other.
// Otherwise the slot no longer holds that state, and the compare-and-swap fails: a conversion changes the version as a
// claim does, since a plan may be changed and changed back. Without this rule a bucket would be read by another plan's
// numbers: as more tokens than it has, or fewer.
//
// A conversion keeps the tokens that a key has taken (R24), and never fewer. So whatever the changes, a key gets over
// any interval at most the highest limit and the highest rate that it had in it. The reason: a debt in tokens is at
// least that of a bucket of those numbers from which the same was taken. An idle record owes no tokens by any plan, so
// it may be forgotten whatever comes next. R24 says at which time the tokens are counted.
//
// R10. The last change of a sliding log, a request or a refund, is in the state alone, and the call that changes the
// state next enters it in the ring first. A request is an entry for each token. A refund keeps so many of the newest
// entries; the others are marked as gone, the oldest first, so that behind one that is gone all are. An entry is
// changed by a compare-and-swap from a value that was read before the state was read once more. So the state cannot
// move on before the entries are made. And an entry never comes back to a value that it had: a tenure begins by
// clearing the ring under CLAIM, with its version; ticks only grow within a version; and a refund changes the version.
// So a compare-and-swap fails that is prepared for a state long gone, or for a state whose ring is another by now.
// With an entry made after the next change, or by a plain store, a late call would write an old tick over a new one:
// requests would leave the window before their time. With a refund made in the ring instead of the state, a late call
// would take the request of another key out of its log.
//
// A refund by a receipt has taken the oldest tokens out, and afterwards puts their ticks in the place of those of its
// take. Each of these exchanges makes an entry older, but no older than it is to be in the end, and is given up when
// the version has changed. So at every moment at least as many requests lie in any window as there should. A refusal
// beside which an exchange has made room is decided again.
//
// R11. A live record lies within the probe bound of its home, and a search for a key's record ends there. The first
// stride is always within the bound. A call that settles a record further on extends the bound to its slot before the
// search, which reads the bound when the first stride is done: to publish, in R4, is to publish and to extend.
//
// A home has two bounds, of which the larger counts. One of them is the target: what is published extends it. Which of
// the two is the target is read after the record was published. A sweep that lowers probe bounds, one at a time,
// changes the target, then meets every slot, aborts what is TENT (R7), extends the target for what is LIVE, then
// clears the other bound. A call that read the target before it was changed has published before, so the sweep meets
// its record; a call that reads it afterwards extends the bound that is not cleared. A sweep that gives up clears
// nothing, and the next one goes on with its target: for searches it might change it again, but then the other bound
// would never be cleared.
//
// If the bound were extended before the record is published, a whole sweep could pass in between and clear it. If only
// the claimer extended it, another call could commit the record before. In both cases a live record is out of sight,
// and a second one is made for its key. If settle extended the bound after its search, each of two inserts could miss
// the other.
//
// R12. A page is marked before the claim of a slot that was never used, and so before the record there is published.
// Sweeps and replacements of the plan pass the pages that are not marked. A page that they pass has no record, or none
// that was published before its mark was read, which is as if they had come to the slot before: R7, R9 and R11 say
// what then becomes of the record. A mark is for ever, as a used slot is never unused again (R5). If the mark were
// made after the record is published, a live record could be passed: it would grow older than the circle, follow a
// plan of long ago, or lose its probe bound. If it were marked after the claim, a claimer that dies in between would
// leave a slot that sweeps pass (R17).
//
// R13. A quota that has numbers of its own names the unit that they are in, and is compared with that of the plan that
// the state follows (R9). A quota of another unit grants nothing. A unit is that of one table, and a new plan has it
// as long as the numbers mean the same to it. Without this a limit would be applied in ticks of another length, or
// where a payload has no room for it. Any record can be judged, and forgotten, without the quota of its key: when it
// is full is a time, whatever a token cost.
//
// R14. A charge, which takes what fits under a bound whether it is there or not, is one compare-and-swap like any
// take; the first one of a key is in its commit (R8). The bound is so many limits, as far as a payload has room: two
// skews of a bucket, so that R7 holds. What a refusal costs is charged in one step with it, from the state that
// refused: were it charged by a second compare-and-swap, tokens could have come back in between, and a request pay
// that could have been admitted. A request for more than the limit is refused by any state, so its charge may be a
// step of its own. A take of as many tokens as there are, from a least to a most, compares the least with what the
// state has from which it takes: a look at the record first, and a take of what was seen, would take less than the
// least when others take between.
//
// R15. A refund gives back what its take has taken, and nothing else. The record alone does not show all of that.
// Words outside the record show the rest, and a refund reads them after the record.
//
// A receipt is for a take of one tenure. When a tenure ends because the record is idle, all that it owed has come back
// by itself, and the record of a later tenure says so: the time at which the take's tokens were back, its window, or
// its tick, is past. When it ends by force, by a reset or an eviction, nothing of that follows. So forced ends are
// counted, for some homes together: as begun before the compare-and-swap that ends the tenure, and as under way until
// after it. A call that wants a receipt reads both, in one word, before it takes. A refund reads how many have begun
// after it has read the record. If none was under way then, and none has begun since, no tenure was ended by force
// between the two: it would have been counted as begun before the take, and then was over before, too; or after, and
// then the refund sees that, since it has read a record of a later tenure. Otherwise nothing is given back. (That the
// word is for several homes gives less back, never more.) Were an end counted after it was made, a refund could meet
// the next tenure and no count. Were it over before it was made, a take of the old tenure could see it as past (the
// compare-and-swap succeeds nonetheless if another take was given back meanwhile, so that the state is what it was).
// If the call read the word after the take, an end between the two would be missed. What the call itself evicts near
// its key, to make room for its record, is over before its take, so the receipt takes it as counted: else a receipt of
// such a take would be good for nothing.
//
// A receipt also names the plan of its take, by a number that no other plan of the table has. What a conversion (R9)
// makes of a single take is not known, but of a log, whose requests stay what they are.
//
// A bucket that is what the take left, to the bit, owes nothing to a later take that was not given back: within a
// version it grows by takes, and falls only by refunds of the last of them. So it is made what it would be had the
// take taken less, which is right at any time, and no clock is read. But what looks so may be a bucket of another
// tenure, of another plan, or of a later turn of the circle. The first two are told as above. (But if an earlier take
// of its tenure was given back, the bucket is full before the tick that this one left, and a later tenure may reach
// the same tick. It is told apart by the version alone, and in another slot that is the same for one in 128.) There is
// none of the third if the watermark, read after the record, is at most a skew later than the take: no take is more
// than a skew ahead of it, and one of the next turn is 14 later than this. Else a take would be forgiven of which
// nothing is given back.
//
// What comes back to a bucket by itself before a later take, that take has had. So a refund is reckoned at a time that
// no take of the record was later than: its own, which is read from the clock after the record (R7), or the latest at
// which a request ahead of its clock was granted. The call that grants it enters that before its compare-and-swap.
//
// R16. A receipt of what is in flight is good after a change of the plan, and after a forced end of another key's
// tenure, for all of its cost, whatever its key may have by now: else a place would be held that no caller has, for as
// long as it is remembered. So it is not told by R15 which tenure it is for. The record says that in its payload, by a
// number: how many tenures near by had begun to be ended by force when it was committed, modulo 2^16. It is read after
// the search that found no record, so an end that made room for the commit is counted, and the end of this tenure is
// not. What a record drops because it was never given back is counted by the call whose compare-and-swap drops it,
// after that.
//
// R25. A reservation goes at the time it was told, and what goes and is taken fits. Consider all that is taken at
// once, or goes when its wait is over, and is not given back. In any time t that is no more than the limit and what
// comes back in t. A bucket is the tick at which it is full and nothing else, so the rule must follow from the tick:
// the debt at any time is at least what was taken for that time or a later one. A take, or a reservation, adds its
// cost at all times. A refund may take off no more than leaves that true. For the time of its own take and for earlier
// times, it may take off the cost of that take. For later times, it may take off what the bucket would owe then by
// that take alone: all else that is owed then may have been taken for that time. So a refund is calculated at the
// latest time at which a reservation near by goes, if that is later than the time of R15. A call that tells a
// reservation to wait enters the end of that wait before its compare-and-swap, and a refund reads it after the state.
// There is one exception: nothing came behind a take, or a part of it was given back only as if it had never been.
// Then the bucket becomes what it would be without the refunded part, at all times, and no time is read. So the last
// in line comes back whole, and so does a part of it. Of one in the middle, what the line does not need comes back.
// The rest is lost, since a bucket has no place for a gap in its line. If a refund were calculated at its own time,
// what it gives would go at one time with those who were told to go later.
//
// R24. A record is converted by its own tier's numbers. Four bits of the key word say under which tier the key took
// last, or that it took under a quota with numbers of its own. Where records have no prices (R27), a token costs the
// same under such a quota as under tier 0, and so it does after the change. A call under another tier than the key word
// says writes its own tier there. It does so by a compare-and-swap of the key's own label, before the compare-and-swap
// by which it takes. So a call that reads a state with that take, and then the key word, finds the tier of the take, or
// one under which another call has asked since. (In the second case the key was under that tier before the plan
// changed.) Hit compares the whole word, and leaves a key under another tier to the calls that write it. A search
// compares the fingerprint. Without the tier every debt would be scaled by the numbers of tier 0: a change of those
// would forgive the debts of other tiers, or multiply them. If the tier were written after the take, a conversion
// between the two would do so.
//
// A record may have been charged for times after that of its conversion: by requests ahead of their clock, by
// reservations, which go when they were told, and by requests whose clock was read after that of the call that
// replaces the plan, which may be suspended. So a conversion counts the tokens owed at two times, and keeps the later
// of the two ticks at which the bucket would be full. One is the watermark: no later call is decided before it. The
// other is the latest time for which the record may have been charged, or the moment at which it owes nothing by the
// plan before, if that is earlier. It is the latest of three: at which a request ahead of its clock was granted, until
// which a reservation near by was told to wait (both are read after the state: R15), and a time by the clock that was
// read when the new plan was the present one. (A request that was decided by the plan before had read its clock before
// it read the plan.) The first call that converts a record reads that clock, whichever call it is. With a slower rate
// the first time counts, with a faster one the second: by the first alone, tokens that were taken for a later time
// would have come back by then.
//
// A key may owe more at the watermark than all limits that it ever had, because of reservations or charges. That
// excess stays as much time until the latest of the reservations near by goes. Until then the bucket grants nothing
// but what a higher limit has above all previous ones. In tokens of a slower rate, the next caller would wait for
// longer than those before it. If the present limit counted instead of the highest, what was taken under a higher one
// would be forgiven. (R28 says which limits these are.)
//
// R27. A table with limits of several rates keeps the tokens that a key has taken. A payload is a time. How many
// tokens a time is, only the price of a token says, so a record has two words with prices: one for versions that are
// even, one for those that are odd. A call of another price sees as many tokens at its own price, rounded up. When it
// is admitted it writes that, in the compare-and-swap by which it takes, with the next version. Before, it offers its
// price for that version: by a compare-and-swap of the other word, from a value that was read before the state was
// read once more. So the word of a version that a record has is never changed: to go on from version v, a word of
// version v+1 must be there, and a call that would overwrite that has read a state of version v after another value.
// Within a version tokens are only taken, so a state that was left does not come back. (What is given back changes the
// version, also if nothing came behind.) An offer names the state that it is for, by twelve bits. One that is for this
// state is used by whoever finds it: the call makes its own take at that price, so no two calls keep each other from
// ending. It counts what the record owed as a call of that price counts it, at both times, and adds its own tokens. If
// it scaled all at its own time, what goes later would be forgiven. One for another state that looks the same is as
// good. If the record has no room for its debt at that price, a tick is added, and the offer is for another state. (A
// call that is suspended within an offer, while others come to a state of the same mark and use the offer before it,
// could change a record's price: one state of 4096.) A record is committed at the price of the call that claimed
// it. A call of another price commits it full, and begins again. Hit leaves tables with prices alone. HitQuota and
// HitTier compare the price with the state that was read before it. Without prices 100/s with burst 100, drained,
// would be one token of 1/s. So a table without them has one price: a quota of another is an error. If the price were
// written after the state, or by a plain store, a debt would be read at a price at which nobody was charged.
//
// What a record owes comes back at its price. A request that is refused leaves it, unless its own price is lower: then
// it converts the record, and takes nothing. So does a reservation that is refused, and a charge of which nothing fits.
// Else a key would wait for a slow quota's token under a fast quota.
//
// Tokens are counted at two times, as in R24. For a higher price that is the earliest time at which a later call may
// be decided: that of the call's clock, and the watermark moves there first unless the record is idle by it. So no
// late call finds the record with what came back at the lower price counted as at the higher one. For a lower price it
// is the latest time for which the record may have been charged: at which a request ahead of its clock was granted,
// until which a reservation near by waits, or that of the clock, which is read after the state.
//
// A replacement of the plan offers prices in units of the next plan. So a call that has met another's offer reads the
// plan after it, and begins again if that is not its own. A replacement that meets another's offer adds a tick. Else a
// price would be read in other ticks than it was offered in, and a debt would come back at a rate that no limit has.
//
// A debt at a price may be more than a record has room for. A call of that price sees at its own time as much as the
// largest limit, and is refused. If it were cut off at the earlier time, a call ahead of its clock would see less.
//
// A replacement of the plan converts a record at its price. If that is the price of the tier that the key word names,
// and the record has room for its tokens at the tier's next price, it gets that price. No part of the debt is above all
// limits that the key had (R24), since it may be tokens of another tier, or of a quota. Else the record owes as much
// time, at the same price: a plan has room for what any quota may owe, or is refused. If what is above the tier's own
// highest limit stayed time, a change of a slow tier would forgive what was taken under another; and so would a debt
// that is cut off where a record has no more room.
//
// A refund counts in tokens of the record. A receipt of the same version has the same price, unless the version has
// come round: after 128 changes of the price (R15). Then it gives back what has come back since, too, but no more in
// all than it is for, once. For any other, what came back since the take has done so at the lowest price of all
// conversions at most: a word of the table has it, and is written before the conversion.
//
// # Why it is right
//
// One record a key (I3). A record becomes LIVE only by a commit. Let two commits of one key come from slots a and b, a
// published and within its bound (R11) first. The commit of b searched after b was (R4), hence after a was. If a was
// decided by then, it was LIVE and b aborts, unless it had been forgotten, and then there is one record. If a was
// TENT, b is aborted if it is the higher; if it is the lower it kills a, or fails to and finds it LIVE (R6).
//
// Charged once, to its own key (I2). A hit is one compare-and-swap from a state read before the key (R1). A commit is
// one compare-and-swap and is its own take (R8).
//
// Never above the limit (I1): that of the call, if several are applied to one key. Within a tenure the payload only
// moves by takes that the bucket allows, and by charges (R14), and it does not fall but by refunds. Between two
// tenures of a key the record was idle at the watermark, and the next starts no earlier than the watermark (R7): the
// payload is what it would have been had the record stayed. Evictions are the exception, and counted.
//
// A refusal writes nothing (I4), unless the plan says that it costs something (R14): R2 is a read, and a key that is
// refused has a record already, since a full bucket admits every cost up to the burst.
//
// Lock-free (I5). No call waits for CLAIM: it is passed. Any call can settle TENT. Every other compare-and-swap that
// fails has met one that succeeded: a take, a commit, an abort in favour of a record that stays or of a stranger's
// that has just taken the slot, or by a sweep, a claim, or a bound extended or cleared. A goroutine that is stopped
// for ever inside a claim costs one slot, and inside a sweep that probe bounds are lowered; if its process is dead,
// only until the next sweep (R17, R18). A replacement of the plan is completed by whoever comes next (R22), but for
// its first three steps: one that is stopped there keeps others from replacing it, and from nothing else.
//
// # Time and memory
//
// A hit costs one line in the common case, 1.34 lines on average in a table that is 0.6 full of live records. An
// insert searches twice more, as far as the probe bound of its home: a line or two, if a sweep has come by since the
// table was fuller. Nothing is allocated after New, the slots hold no pointers, and large tables lie outside the Go
// heap. No call waits for the sweeper (Sweep); it counts, lowers probe bounds, and keeps idle records from growing
// older than the payload's circle.
//
// # Stability
//
// This package is exported because other modules of this repository need it. It may change in any release.
package shard
