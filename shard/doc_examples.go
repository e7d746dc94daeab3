// # Examples of the long rules
//
// A and B are goroutines, P and Q processes. Times are in seconds. A bucket gets 1 token per second and has a burst of
// 5, unless the example says otherwise. The record holds the time at which the bucket is full. Each example shows what
// happens by the rule, then what would happen without it.
//
// R7. A reads its clock at 10 and is suspended. The key's record is idle at 12. At 12, B moves the watermark to 12 and
// claims the slot for another key. A resumes, finds no record and makes one, which starts full at 12, the watermark.
// Without the watermark it would start full at 10. A would take 5 tokens, and two of them would be back by 12. But
// those two seconds have already refilled the record that B removed, so they would refill the key twice.
//
// R9. The key has taken 4 of 5 tokens under plan 1, and its record is LIVE. A reads the state. B replaces plan 1 by
// plan 2, with a burst of 10 and the tag LIVE'. A reads the plan after the state, so it sees that a LIVE record follows
// the previous plan, and converts it: 4 of 10 tokens are owed. If A had read plan 1 before the state, it could apply
// plan 1 to a record that was already converted, and read the ticks at the wrong rate.
//
// R10. A log with a limit of 3 has the requests made at 1 and 2 in its ring, and the request made at 3 only in its
// state. A and B both want to add a request at 4, so each first enters the request made at 3 in the ring. B is
// suspended before this compare-and-swap. Three requests later the same entry holds 6, so B's compare-and-swap fails. A
// plain store would overwrite 6 with 3, and the request made at 6 would leave the window three seconds early.
//
// R11. A publishes a record in the third stride of its probe window. The bound is one stride, so A extends it to three
// and then searches. Meanwhile a sweep lowers bounds, and begins by switching the target. If A read the target after
// the switch, it extends the new target, which the sweep does not clear. If A read the target before, it had already
// published its record, so the sweep visits the record. If A had extended the bound before it published, a whole sweep
// could clear the bound in between. B would then search one stride, miss the record and make a second one.
//
// R15. A takes 2 tokens with a receipt at 10. At 11 a reset ends the tenure. At 12 the key takes 2 tokens again, in a
// new record, and A refunds its receipt. The count of forced ends has grown since A's take, so nothing is given back.
// Without the count the refund would give back the tokens of the take at 12.
//
// R24. Tier 1 has a rate of 1 token per second, and tier 2 a rate of 10. A key under tier 1 owes 3 tokens, which is 3
// seconds. A new plan gives tier 1 a rate of 2. The key word says tier 1, so the record owes 3 tokens at the new rate:
// 1.5 seconds. By the numbers of tier 2, a debt of 3 seconds would be 30 tokens.
//
// R25. The bucket is empty at 10. A reserves 5 tokens that are due at 15, and B reserves 5 that are due at 20. A gives
// its reservation back at once. With A's reservation alone the bucket would owe nothing at 20, so the refund gives
// nothing back, and the bucket still owes 5 tokens at 20. If all of A's tokens came back, the bucket would be full at
// 20. Another call could then take 5 tokens when B's 5 are due: ten tokens at one time.
//
// R27. A key has taken 100 tokens at 100 tokens per second, which is 1 second of debt. The next call has a limit of 1
// token per second with a burst of 100. It sees 100 owed tokens, which are 100 seconds at its price, and is refused.
// Without the price it would see 1 second, which is one owed token, and could take 99 more.
//
// R21. P reads plan 4 and is suspended. Other processes replace the plan twice. P resumes and reads a state that is
// LIVE, the tag of plans 4 and 6. P then reads the word planned, which says 6, builds plans 6 and 5 from the shared
// memory, and decides by plan 6. Without the word, P would decide by plan 4.
//
// R22. P announces plan 5 and is killed before the watermark moves (step 5). A call of Q finds a change that is not
// complete. Q moves the watermark to the time of its clock, sets planned to 5, converts every slot and marks the change
// as complete. If only P could do this, the watermark would stand still forever.
//
// R23. The counter by which P reads the time runs an hour ahead. A call of P is ahead of the watermark by more than 15
// s, so it reads the clock of the machine and is decided by that clock. Without the rule, the watermark would move an
// hour ahead, and no bucket of any process would refill for an hour.
//
// R26. P takes a token from a key that already has one token in flight. The entry of P's take is pending (step 1), and
// the state names the entry as entering (3). P is killed before the holder becomes counted (4). A sweep of Q finds this
// entry of a dead process. The record names the entry as entering, so Q marks it as counted, takes the token off the
// record (6) and frees the entry (7). If Q looked at the entry alone, it would free the entry as pending, and the
// record would still count a token that no caller has.
package shard
