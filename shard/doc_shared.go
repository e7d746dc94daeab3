// # A table of several processes
//
// A shared table ([Map]) consists of the same words, in memory that several processes have mapped. The rules of doc.go
// allow for goroutines that stop forever, and a killed process is like such goroutines. The rules below are about what
// a killed process leaves behind, words with values that no process should have written, and the plan. Each process
// builds its own plan from numbers in the memory, and has its own units of quotas. If windows begin with periods of a
// calendar, all processes must have the same calendar. Otherwise one process, already in the next period, could reclaim
// a record that still counts for another process, and the key would get the limit once more.
//
// R17. A claim names its claimer: the payload is the number of the claimer's attachment to the table. A sweep frees a
// slot that a dead attachment has claimed. An attachment is dead when none of its goroutines runs or ever will run, and
// no later attachment has its number. So no goroutine is about to publish in the slot. (Tentative records need no
// owner: any call settles them, and a sweep aborts them.) If a sweep freed the claim of a live attachment, the claimer
// would publish over another key's record. If numbers were reused, claims of dead attachments would look alive, and
// their slots would be lost.
//
// R18. One sweep at a time lowers probe bounds. A word names the attachment of this sweep. If the attachment is dead,
// its sweep counts as one that stopped early, and the next sweep continues with its target (R11). Without this rule,
// probe bounds would never be lowered again. A sweep of all slots, and the clearing of bounds, may be restarted at any
// point: bounds are cleared by compare-and-swap, and the word is written last.
//
// R19. If a process dies while a forced end of one of its calls is under way (R15), the end stays counted as under way,
// and makes valid receipts void: less is given back, never more. A process that attaches removes these counts. It reads
// the word that counts ends, finds that no other process is attached, and then writes the word by a compare-and-swap.
// So all ends that the word counted as under way belonged to dead processes. If a call changes the word in the
// meantime, the compare-and-swap fails. Other processes may attach at any time, and none of them waits for a process
// that stops while it attaches.
//
// R20. Any word may hold any value. Whatever the value is, no call crashes, loops forever, or accesses memory outside
// the table.
//
//   - A mark of a page beyond the last one is ignored, and so is a bound for a slot outside the key's window.
//   - A live record that follows no plan is freed. So is a record that searches do not find, because a slot before it
//     looks as if it was never used. If a record is beyond its probe bound, the bound is extended to it. Otherwise an
//     insert that meets such a record would search for it forever.
//   - A record that only Hit finds may refuse a reservation. Since other searches do not find it, the reservation then
//     inserts.
//   - Any value of a price word is a valid price.
//   - Logs are not shared, because calls use the positions in a log's ring without a check.
//
// A call that reads words that no process wrote decides by those words. This affects the records of this table only.
//
// R21. A shared table holds its plan by value. The numbers of plan n are in one of two areas, and the word planned
// holds the number of the current plan. A process that has built plan n decides by it only if planned, read after the
// state, says n. So R9 holds for all processes, even for one that was suspended during any number of replacements. The
// process's own plan only says what the number means. (Tags distinguish two plans only while they are the current and
// the previous one.)
//
// If planned says another number n, the call builds plan n, and plan n-1, from which records are converted. Then it
// checks that planned still says n. The numbers of a plan are complete before it is announced (R22). The area of plan n
// is rewritten for plan n+2, when all records follow plan n+1 and planned says so. So if planned still says n, the call
// has read the numbers that were announced for plan n. The numbers of plan n-1 may have been rewritten, but then all
// records follow plan n, and the compare-and-swap of a conversion fails.
//
// Without the word planned, a process would decide by an old plan with the same tag as the current one. Without the
// second check of planned, it would decide by the numbers of a later plan.
//
// R22. A replacement consists of steps, and after each step any call can continue it. The words setting, change and
// planned show how far it is.
//
//	(1) A process writes its number to the word setting, unless the number of a live process is there. From then
//	    on, it is the only process that may write the numbers of a plan.
//	(2) It completes a replacement that is under way.
//	(3) It writes the numbers of the new plan.
//	(4) It announces the plan: it writes the plan's number to the word change, marked as not complete. Then it
//	    clears setting.
//	(5) The watermark moves to the time of the call that makes this step.
//	(6) The word planned gets the plan's number.
//	(7) Every slot is visited, as in R9.
//	(8) The word change is marked as complete.
//
// Any number of calls may make steps 5 to 8: change and planned show which step is next. Steps 6 and 8 are
// compare-and-swaps from a number that never returns. Steps 5 and 7 may be repeated. Four callers complete a
// replacement that they find: a call that moves the watermark, a sweep, the next replacement, and a process that
// attaches and compares its numbers with the plan's numbers.
//
// So if a process dies, its replacement is made completely or not at all, and no process waits for a process that has
// announced a plan. If the process dies between steps 1 and 4, it has announced nothing, and its numbers are
// overwritten. If it dies after step 4 and before it clears setting, the next process that writes setting completes the
// plan in step 2, and then writes to the other area. Without step 1, two processes could build different plans with one
// number. If the next plan were announced before step 8, records of three plans would share two tags.
//
// Records are converted at the watermark, and calls decide by the previous plan until step 6. Any length of time may
// pass before step 6, because the replacing process may be suspended or die. So a call that makes step 5 reads its
// clock after it has seen the announcement. (Without a clock, it uses the time that it was given.) If step 5 did not
// move the watermark, takes since the beginning of the replacement would be converted at the old time. Then tokens that
// came back by the previous plan after that time would come back again by the new plan, or be lost.
//
// Step 5 moves the watermark as in R7, by the smaller skew of the two plans and without whole turns. If the last sweep
// is more than that skew behind, step 5 begins with a sweep. One move is usually enough. The watermark stays behind
// only if the new skew is less than a quarter of the previous one and more than four of the new skews have passed. A
// call that is ahead of the watermark by a skew of the previous plan then completes the replacement before it decides.
//
// When the watermark moves in step 5, all records follow the previous plan, with one exception: a call may be suspended
// in step 5. It reads the watermark, then planned, and its compare-and-swap of the watermark may come while records are
// converted, or later. Because the call read the watermark first, at most one such compare-and-swap succeeds after step
// 6, and none after step 5 of the next replacement. It moves the watermark by no more than any call may move it under
// either plan. If a call read planned first, a move by the skews of much older plans could succeed.
//
// Apart from step 5, the watermark does not move between steps 4 and 8, since the circles of the two plans differ (R7).
// A call that wants to move the watermark reads it, then checks that no replacement is under way, then makes its
// compare-and-swap. If the check was before step 4, the compare-and-swap succeeds before step 5 or fails. The reason is
// that step 5 always changes the watermark: by a nanosecond if it is already at its target. Without step 5, a leap by
// whole turns of the previous plan's circle could succeed when records follow the new plan.
//
// R23. The watermark of a shared table moves only to a time that the machine's clock has reached. The call that moves
// it reads the machine's clock in the same step (except for the nanosecond of R22). All processes share the machine's
// clock. But each decides by its own clock, such as a processor's counter, which may be wrong: a counter can continue
// while the machine sleeps.
//
// A call whose own clock is ahead of the watermark by more than the trust reads the machine's clock. If the machine's
// clock is earlier, the call is decided by it, and so charges no record ahead of it. If the call wants to claim a
// record that is not idle by the machine's clock, it gives up the claim and starts over at the machine's time. Sweeps
// keep the watermark within the trust, so processes whose clocks are right seldom read the machine's clock.
//
// Without this rule, one call with a clock that is hours ahead would move the watermark there. The watermark never
// falls, so all processes, and those that attach later, would decide at that time for hours, and no bucket would
// refill. If the trust were the skew, a call with such a clock would charge its key's record hours ahead, and starve
// the key.
//
// If the watermark is ahead of the machine's clock in spite of this rule, no process wrote it (R20). A process that
// attaches refuses such a table.
//
// R26. When a process is dead, the requests that it has in flight are freed. A record cannot say which processes have
// its tokens, because there may be any number of them. So each take has an entry of three words: its process (holder),
// its slot and number of tokens (slotTokens), and its time (takenAt). An entry is free, pending or counted. The record
// and the entry are separate words, and a process may die between any two writes. The steps are:
//
//	(1) The process takes a free entry by a compare-and-swap, which makes the entry pending. Then it writes the
//	    words slotTokens and takenAt.
//	(2) It marks the entry of the record's last change (see below).
//	(3) The compare-and-swap of the take adds the tokens to the record, and names the entry as entering.
//	(4) The entry is marked as counted, in its holder.
//	(5) A call that gives the tokens back marks the entry of the record's last change. Then it reads the holder of
//	    the take's entry, which must still be the holder of this take.
//	(6) The compare-and-swap from that state takes the tokens off the record, and names the entry as leaving.
//	(7) The entry is marked as free, in its holder.
//
//	        (1)              (4), or the next change         (7), or the next change
//	free --------> pending -------------------------> counted ------------------------> free
//	  ^               |
//	  '---------------' not taken; or its process is dead, and the record does not name it
//
// A record names only the entry of its last change. So a call that changes a record, or ends its tenure, first marks
// that entry: as counted if the last change was a take, as free if the last change gave the tokens back. Therefore it
// is always known whether a take was made: its entry is counted, or the record names the entry. To mark an entry, a
// call reads its holder, reads the state again, and then makes a compare-and-swap of the holder. It does so only if the
// entry still belongs to this slot.
//
// The state counts its changes modulo 2^11, so a record that returns to the same tokens and the same entry differs from
// the earlier one. (As with versions, there is a gap. A call might miss one mark if it is suspended for exactly 2,048
// changes that end in the same state, or for 256 takes of an entry. If the process that has the tokens dies just then,
// its tokens stay until the record is reset.)
//
// Any call may make steps 5 to 7 for an entry of a dead process, or for an entry that is older than the plan remembers.
// If several calls do so, the entry leaves only once, because its holder is read after the state. If the entry had
// already left, the record would name it, or the next change would have freed it. If the entry leaves in between, the
// compare-and-swap fails.
//
// A pending entry of a dead process was never counted if its slot does not name it, since no other process makes step
// 3. An entry that is older than the plan remembers is marked before it is removed. Its process may be suspended
// between steps 3 and 4, and a record at its limit may have no next change that marks the entry.
//
// The holder has a generation: step 1 counts how often the entry was taken. The generation wraps around after 256
// takes, so a receipt holds it together with the low bits of takenAt. Therefore a receipt of a forgotten entry gives
// back no tokens of a later take that uses the entry now. While something is in flight, the record stays: it is not
// idle, and it is not evicted (a new key is then refused). So a slot does not change keys while an entry names it.
//
// A reset marks the entry of the last change, and then makes every entry of the record leave. A refund without a
// receipt does the same, up to its number of tokens. Both visit all entries, and in the meantime the slot may change
// keys. So they read the holder of an entry first, and then the key. The key cannot change while the entry is counted.
// In the other order, they could give back tokens that another key has in flight. A reset may find no entry of the
// record, while the record does not change. Then no entry accounts for the record's tokens, so the reset forgets the
// record.
//
// After a loss of power, a file may have a record without its entry, or an entry without its record. So the first
// process that attaches after a boot forgets all records and entries, before any other process can attach.
//
// If the entry of the last change were not marked before the next change, it would not be known whether that entry's
// take was made. The tokens of a dead process would then stay, or be taken off the record twice. If an entry became
// counted before its take, and its process died in between, the tokens of another process would be taken off. If the
// holder were read before the state, two calls could give back one entry.
//
// R28. The table remembers the largest quota before that quota is made. A call that makes a larger quota than any
// before first enters the quota's number of tokens (Remember), then reads the plan, and makes the quota by that plan. A
// replacement reads this number (Largest), and its plan leaves room in records for that many tokens.
//
// Entering a number and replacing the plan exclude each other: in a table of one process by a lock of the caller, and
// in a shared table by the word setting (R22). Only the process that has setting enters a number or announces the
// numbers of a plan. A replacement checks the number again when it has setting, and gives up if the number has grown.
// Before a process enters a number, it completes any replacement that was announced without this number. So a plan that
// does not allow for a quota is complete before that quota is made. Without this rule, a record could owe more than the
// next plan has room for, and a conversion would forgive the rest.
//
// If a token costs the same by all tiers and quotas, a conversion reads the number after the state (R24). The key may
// have taken all tokens of a large quota or tier, and may then wait under a small one, which the key word names. The
// number, with which the limit of tier 0 also counts, is at least the limit under which the record was charged, because
// a quota is remembered before it is made. Tokens that a copy of a table brings in from other tiers are remembered,
// too. If only the limit that the key word names counted, taken tokens would count as waiting time, and would come back
// as if the rate had not changed.
//
// In a table of windows, the first quota also enters a number, because keys may have any limit from then on. A
// conversion reads, after the state, whether there is a number. If a quota could be made while a replacement that does
// not know about it converts records, some windows would end as if there were no quota.
//
// R29. After a change of the windows of the clock, the first aligned window of a key ends with the first whole window
// of the clock since the change, or with a later one. The reason is that the key may have had a window that was over
// before the change, so that its record is forgotten. For example, a limit of 41 per hour becomes 1000 per day a minute
// before midnight. Without this rule, a key would get 1000 tokens at once and 1000 tokens a minute later. Each further
// change back and forth would admit as many again.
//
// When a replacement has converted all records, it enters the watermark in the word realigned. An old window that was
// forgotten was over at the watermark (R7). An old window that was not over has been converted (R24), so it ends with a
// window of the clock.
//
// While records are being converted, a call that begins a window uses the watermark itself. The call first reads the
// plan, and then checks whether records are being converted (isConverting). The replacement enters the watermark before
// this check can return false. So a call that uses the new plan finds either that records are being converted, or the
// time in the word. If the replacement read the watermark before it had converted the records, an old window could end
// after that watermark, and then be forgotten.
//
// In a shared table every process that completes the replacement (R22) reads the watermark after the records, and
// enters it only if the replacement is not complete by then. A later watermark is safe: it makes first windows longer.
// While another plan is announced, but not yet current, the word realigned is complete, so a call uses the word. If the
// call used the watermark instead, windows would become longer until that replacement is complete. If the word has a
// time that the watermark has not reached, the watermark counts (R20). Otherwise windows would not end before that
// time, or would seem to be over.
package shard
