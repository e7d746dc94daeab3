// # Examples of the long rules
//
// A and B are goroutines. Times are in seconds, and a bucket of 1 token a second and burst 5 is full at the time that
// the record says. Each example shows what happens by the rule, and then what would happen without it.
//
// R7. A reads its clock at 10 and is suspended. The key's record is idle at 12, so B claims its slot for another key at
// 12 and moves the watermark to 12 first. A goes on, finds no record and makes one. Its bucket starts full at 12, the
// watermark, not at 10. Without the watermark A would take 5 tokens at 10, and by 12 two of them would be back: the
// same two seconds have already refilled the record that B has removed.
//
// R9. The key has taken 4 of 5 tokens at plan 1, which is LIVE. B replaces it by plan 2 with burst 10, which is LIVE'.
// A has read the state before that. A reads the plan after the state, sees that a LIVE record is one of the previous
// plan, and converts it: 4 tokens are owed of 10. If A had read plan 1 before the state, it could apply plan 1 to a
// record that plan 2 has converted, and would read its ticks at the wrong rate.
//
// R10. A log of 3 has requests at 1 and 2 in its ring, and the request of 3 in its state alone. A and B both want to
// add a request at 4. Each first enters 3 in the ring. B is suspended before its compare-and-swap of the entry. Three
// requests later the entry holds 6, so the compare-and-swap of B fails. With a plain store B would write 3 over 6, and
// the request of 6 would leave the window three seconds early.
//
// R11. A publishes a record in the third stride of its home. The bound says one stride, so A extends it to three, and
// then searches. Meanwhile a sweep lowers bounds: it changes the target first, so A's extension is on the side that the
// sweep keeps, or A has published before and the sweep meets the record. If A had extended the bound first, a whole
// sweep could clear it before A publishes. B would then search one stride, miss the record and make a second one.
//
// R15. A takes 2 tokens with a receipt at 10. At 11 a reset ends the tenure, and at 12 the key takes 2 tokens again in
// a new record. A refunds its receipt at 12. The count of forced ends has grown since the take, so nothing is given
// back. Without the count the refund would forgive the take of 12.
//
// R24. Tier 1 has 1 token a second, tier 2 has 10. A key under tier 1 owes 3 tokens, which is 3 seconds. A new plan
// gives tier 1 a rate of 2. The key word says tier 1, so the record owes 3 tokens at the new rate: 1.5 seconds. By the
// numbers of tier 2 the 3 seconds would have been 30 tokens.
//
// R25. The bucket is empty at 10. A reserves 5 tokens for 15, and B reserves 5 for 20. A gives up at once. By A's take
// alone the bucket would owe nothing at 20, so nothing comes back, and the bucket still owes 5 tokens at 20. If A's
// tokens came back whole, the bucket would be full at 20: another call could take 5 then, and with B ten would go at
// one time.
//
// R27. A key has taken 100 tokens at 100 a second, which is 1 second of debt. The next call has 1 token a second. It
// sees 100 tokens, which at its price are 100 seconds, and is refused. Without the price it would see 1 second: one
// token owed of a burst of 100, and it would be admitted 99 times.
//
// R21. Process P decides by plan 4 and is stopped. Others replace the plan twice. P goes on and reads a state that says
// LIVE, which is the tag of plans 4 and 6. It then reads planned, finds 6, builds plans 6 and 5 from the memory and
// decides by plan 6. Without planned it would decide by plan 4.
//
// R22. Process P announces plan 5 and is killed before the watermark moves (step 5). A call of process Q finds change
// with a number that is not complete. Q moves the watermark to the present time, sets planned to 5, converts every slot
// and marks change as complete. If P alone could do so, the watermark would stand still for ever.
//
// R23. The counter of process P runs an hour ahead. A call of P is ahead of the watermark by more than 15 s, so it
// reads the clock of the machine and is decided by that. The watermark stays. Without the rule the watermark would move
// an hour ahead, and no bucket of any process would refill for an hour.
//
// R26. Process P takes the only token in flight of a key: its entry is pending (1), the state names the entry as
// entering (3), and P is killed before the holder becomes counted (4). A sweep of process Q finds the entry of a dead
// process. The record names it as entering, so Q marks it as counted, takes the token off the record (6) and frees the
// entry (7). If Q looked at the entry alone, it would free a pending entry, and the record would keep a token that
// nobody has.
package shard
