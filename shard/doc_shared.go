// # A table of several processes
//
// A shared table ([Map]) is the same words in memory that several processes have mapped. A process that is killed is
// goroutines that are stopped for ever, which the rules above allow for. The rules below are about what such
// goroutines leave behind, about words that nobody should have written, and about the plan. What a process has of its
// own is its plan, which it builds of numbers in the memory, and the units of its quotas.
//
// R17. A claim says who claims: its payload is the number of the claimer's attachment. A sweep that meets a claim of
// the dead frees the slot. An attachment is dead when none of its goroutines runs, or ever will; no later one has its
// number. So nobody is about to publish there. (What is tentative needs no owner: any call settles it, and a sweep
// aborts it.) Were a claim of the living freed, its goroutine would publish over another's record. Were a number given
// again, claims of the dead would look like those of the living, and the slot would be lost.
//
// R18. The word by which one sweep at a time lowers probe bounds says whose sweep that is. One of the dead has given
// up, and the next goes on with its target (R11), as after any sweep that gave up. Else probe bounds would never be
// lowered again. A complete sweep and the clearing of bounds may be begun again at any point: bounds are cleared by
// compare-and-swap, and the word is written last.
//
// R19. What a dead call had counted as under way (R15) stays so, and makes receipts void that are good: less is given
// back, never more. Who attaches takes it off: it reads the word, finds that nobody else is attached, and then
// compares and swaps. So what the word had under way was of the dead, and a call that counts there meanwhile makes
// the exchange fail. Others may attach at any time: nobody waits for one that is stopped while it attaches.
//
// R20. Any word may hold anything: no call crashes, goes on for ever, or touches what is beside the table because of
// it. A page's mark beyond the last page, and a bound for a slot that is not in the window of its key, are not
// followed. A live record that follows no plan is freed. So is one that a search does not find because a slot before
// it says that it was never used; and one that is beyond its probe bound is brought within it. Else the call that
// meets such a record while it inserts would look for it for ever. (A reservation that was refused by a record which a
// search does not find, since Hit searches otherwise, inserts.) What is decided by words that nobody wrote is decided
// by them: the records of this table are wrong, and no other's. Any word of a price is a price. Logs are not shared,
// since what their rings say is followed without a check.
//
// R21. The plan of a shared table stands in its memory by value: the numbers of plan n in one of two areas, and in one
// word, planned, which n is the present one. A process that has built plan n decides by it only if planned says n,
// read after the state. So R9 holds for all processes, also for one that has slept through any number of replacements:
// it is the word that is read after the state, and the process's own plan is what the word means. (The tags of two
// plans tell them apart only while each is the present one or the one before.) A call that finds another number builds
// the plans n and n-1, of which the latter is what records are converted from, and looks whether planned still says n.
// The numbers of a plan are complete before it is announced (R22), and their area is written again for plan n+2, when
// all records follow plan n+1 and planned says so. So what was read of plan n is what it was announced with; and if
// what was read of plan n-1 was not, all records follow plan n by then, and the compare-and-swap of a conversion
// fails. Without the word a process would decide by a plan of long ago whose tag is that of the present one; without
// the second look by the numbers of a later plan.
//
// R22. A replacement is made in steps, each of which leaves something that any call can go on with. (1) A process
// enters its number in the word setting, if nobody's that is alive is there, and so is the only one that writes
// numbers. (2) It completes a replacement that is under way. (3) It writes the numbers. (4) It announces the plan:
// change says its number, and that it is not complete. Then setting is given back. (5) The watermark moves to the time
// of the call that makes this step. (6) planned becomes the plan's number. (7) Every slot is met, as in R9. (8) change
// says that the plan is complete. Steps 5 to 8 are made by any number of calls, which find from change and planned
// what comes next: 6 and 8 are compare-and-swaps from a number that never comes back, 5 and 7 may be made again. What
// changes the watermark, a sweep, the next replacement, and a process that attaches and compares its numbers with
// those of the plan complete what they find first. So a process that dies in a replacement has made it or not, and
// nobody waits for one that has announced it. If it dies between 1 and 4 it has announced nothing, and its numbers are
// written over; if between 4 and the end of setting, the next process that enters there completes its plan by 2, and
// then writes to the other area. Without 1 two processes could build different plans of one number. If the next plan
// were announced before 8, records of three plans would have two tags.
//
// Records are converted at the watermark, and until 6 calls decide by the plan before. Any time may pass until then:
// the process that replaces the plan is stopped, or dies, and whoever comes next goes on. So a call that makes step 5
// reads its clock after it has seen the announcement, if it has a clock, and else goes by the time that it was given.
// If the watermark stayed where it was when the replacement began, what was taken since would be converted at the old
// time: what has come back since then by the plan before would come back once more by the new one, or be lost.
//
// Step 5 is a step of R7, by the smaller skew of the two plans, without turns, and after a sweep if the last one is
// more than that skew behind. That is far enough, but where the skew of the new plan is less than a quarter of the
// other and four of it have passed: a call that is a skew of the plan before ahead of the watermark completes the
// replacement before it decides. When the step is made all records follow the plan before, but for one case: a call
// that has read planned may be suspended, and its compare-and-swap come when they are converted or complete. It has
// read the watermark before planned. So only the first such step can succeed after 6, and none after step 5 of the
// next replacement; and it is a step that any call may make by either plan. If planned were read first, a step by
// plans of long ago could come.
//
// Else the watermark stands still between 4 and 8, since circles of two plans differ (R7): a call that wants to move
// it has read the watermark, then that no replacement is under way, then it compares and swaps. If it has read that
// before 4, its compare-and-swap comes before 5 or fails, since 5 changes the watermark: by a nanosecond where there
// is nowhere to go. Without 5 a leap by turns of the circle of the plan before could come when records follow the new
// one.
//
// R23. The watermark of a shared table moves only to a time that the machine's clock has reached. The call that moves
// it reads that clock at that step (but for the nanosecond of R22). Each process decides by a clock of its own, such
// as a processor's counter, and that may be wrong: a counter can go on while the machine sleeps. The machine's clock
// is one for all. A call whose own clock is ahead of the watermark by more than the trust reads the machine's clock.
// If that is earlier, the call is decided by it, and so charges no record ahead of it. Sweeps keep the watermark
// within the trust, so calls of processes whose clocks are right seldom read it. A call gives up the claim of a record
// that is not idle by the machine's clock, and begins again at that time. Without this rule one call by a clock that
// is hours ahead moves the watermark there. The watermark never falls, so all processes, including those that attach
// later, decide at that time for hours, and no bucket refills. If the trust were the skew, such a call would charge
// its key's record hours ahead, and starve it.
//
// A watermark that is beyond the machine's clock nonetheless holds a value that no process wrote (R20). A process that
// attaches refuses it.
//
// R26. What a process has in flight is free when the process is dead. A record cannot say whose its tokens are: they
// may be those of any number of processes. So each take has an entry: whose it is (holder), of which slot and how many
// tokens (what), and since when. An entry is free, pending or counted. The record and the entry are two words, and a
// process may die between any two writes. These are the steps:
//
//	(1) The process takes a free entry by a compare-and-swap, which makes it pending, and writes what and since.
//	(2) It marks the entry of the record's last change (see below).
//	(3) The compare-and-swap of the take adds the tokens to the record, and names the entry as entering.
//	(4) The holder becomes counted.
//	(5) To give back: the entry of the last change is marked. Then the holder is read, and is the one that leaves.
//	(6) The compare-and-swap from that state takes the tokens off the record, and names the entry as leaving.
//	(7) The holder becomes free.
//
//	        (1)              (4), or the next change         (7), or the next change
//	free --------> pending -------------------------> counted ------------------------> free
//	  ^               |
//	  '---------------' not taken; or its process is dead, and the record does not name it
//
// A record names the entry of its last change only. So whoever changes a record, or ends its tenure, first marks that
// entry: counted if it entered, free if it left. Whether a take was made can therefore be told at any time: its entry
// is counted, or the record names it. To mark an entry is a compare-and-swap from a holder that was read before the
// state was read once more, and only if the entry is of this slot: an entry that has left may be another slot's by now.
// The state counts its changes modulo 2^11, so that a record which comes back to the same tokens and the same entry is
// not what it was. (As with versions, a call that is held up for exactly 2,048 changes that end in the same state, or
// for 256 takes of an entry, might miss one mark. The tokens of a process that dies just then would stay until the
// record is reset.)
//
// Steps 5 to 7 may be made by anyone, for an entry of the dead or one that is older than the plan remembers, and by
// several at once. The entry leaves once, because its holder is read after the state: had it left before, the record
// would name it, or the next change would have freed it, and the compare-and-swap fails if it leaves in between. A
// pending entry of the dead whose slot does not name it was never counted, since nobody else makes step 3. An entry
// that is older than the plan remembers is marked first: its process may be stopped between steps 3 and 4, and a full
// record has no next change.
//
// The holder has a generation, which step 1 counts. A receipt has it, and the low bits of since, because the generation
// goes round after 256 takes. So a receipt of an entry that was forgotten gives back nothing of who has the entry by
// then. While something is in flight the record stays: it is not idle, and it is not evicted. (A new key is refused
// then.) So a slot is not another key's while an entry names it.
//
// A reset marks the last change, and lets every entry of the record leave. So does a refund of no take in particular,
// up to its tokens. Both go through all entries, and meanwhile the slot may become another key's. So they read the
// holder of an entry, and then the key: as long as the entry is counted, the key stays. Else they would give back what
// the other key has in flight. A reset of a record that stays as it was, while no entry is found, forgets the record:
// no entry knows of its tokens.
//
// After a loss of power a file may have a record without its entry, or an entry without its record. So the first
// process that attaches after a boot forgets all of both, before any other can attach.
//
// Were the last entry not marked before the next change, nobody could tell whether its take was made. A dead process's
// tokens would then stay, or be taken off a second time. Were an entry counted before its take, the tokens of another
// process would be taken off. Were the holder read before the state, two calls could give back one entry.
//
// R28. The table remembers the largest quota before that quota is made. A call that makes a larger one than any before
// enters its number first (Remember), then reads the plan, and makes the quota by that. A replacement reads the number
// (Largest), and its plan leaves records room for so much. The two exclude each other: in a table of one process by a
// lock of the caller, in one of several by the word setting (R22). While a process has that word it alone enters a
// number, or announces numbers of a plan. A replacement looks at the number again when it has the word, and gives up if
// a larger one is there. Who enters a number first completes what was announced without it. So a plan that does not
// know a quota is complete before that quota is made. Otherwise a record could owe more than the next plan has room
// for, and a conversion would forgive the rest.
//
// A conversion where a token costs the same by all tiers and quotas reads the number after the state (R24). The key may
// have taken all of a large quota or tier and wait under a small one: the key word says the small one. A quota is
// remembered before it is made, and tier 0's limit counts with the number, so that is at least what the record was
// charged under. What a copy brings in from other tiers is remembered, too. By the key word alone, what was taken
// would count as waiting, and come back as if the rate had not changed.
package shard
