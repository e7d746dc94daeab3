// Package model has the protocol of package shard as a model for the checker Spin (table.pml). The bounds of the model
// can be larger than the bounds of the real code in fuzz/explore. The model is also a short form of the protocol.
//
// # What is modelled
//
// The model has one window of slots. Each slot has a key and a state of tag, version and payload. A step is one atomic
// load, store or compare-and-swap.
//
//   - Takers make the steps of Table.Take: hit, insert, publish and settle, with the overflow policies evict and
//     refuse.
//   - Resetters make the steps of Table.Reset, and sweepers make the steps of Table.Sweep. Takers and sweepers raise
//     the watermark (R7).
//   - With a shared table, each taker, resetter and sweeper is a process, and one taker may be killed before any step.
//     Later the kernel releases the lock of the taker's seat. Then another process may attach to this seat (R17).
//
// In a bucket, one token comes back per tick, exactly. The model tries every initial content of the window, every key
// and number of tokens of each taker, every reading of the clocks, and every order of steps. Every search visits the
// whole window, because the model has no probe bounds. fuzz/explore tests the probe bounds of R11.
//
// After every write the model asserts
//
//	I1  an admitted take would find its tokens in the bucket, too, if no record had ever
//	    been forgotten; and a key gets at most the burst and the tokens that came back with
//	    time
//	I2  a take is charged to the slot of its own key, every record shows what its key has
//	    taken, a key with a debt has a record, and a refusal is right for the key's own
//	    bucket at the moment of R2
//	I3  no key has two LIVE records
//	I5  at most as many slots are in CLAIM or TENT as calls are under way or have stopped.
//	    At the end no slot is, or one slot if a taker has stopped forever. If a sweep began
//	    after the lock of a killed taker was released, this taker has no such slot after it
//	I7  a record that is forgotten as idle is idle; only evictions and resets forget records
//	    that are not idle
//
// I5 also says that if any number of processes stop anywhere, the other processes finish. Configurations marked
// "progress" check this. With few takes and versions that do not wrap, it is enough that the state space has no cycle.
// Nothing in the model is labelled as progress, so Spin's search for non-progress cycles finds every cycle.
//
// # Mutants
//
// For each rule there is a macro that breaks the rule, and an invariant that the checker must then find broken. Without
// this check, a run without errors would prove nothing.
//
// # What is left out
//
//   - Time on a circle: payloads and times are small numbers, and no time leaps. So neither the skew nor the time of
//     the last sweep is modelled. No version may wrap within the bounds.
//   - Windows that overlap partly: every key has the same window.
//   - Ticks that are rounded, the policy that admits without a record, Peek, and the counters. The model itself records
//     evictions.
//   - Memory models weaker than sequential consistency. Go's atomics are sequentially consistent.
//   - A check that package shard matches the model. The model has the order and names of the code, so that the two
//     texts can be compared.
//
// # By hand
//
// The test needs spin and gcc (.ci/install spin gcc libc6-dev) and a build tag:
//
//	go test -tags explore -v ./fuzz/model                 the quick configurations and the mutants
//	go test -tags explore -v -timeout 0 ./fuzz/model -large
//
// To check one configuration, in a separate directory, with any of the macros at the top of table.pml:
//
//	spin -a -DTAKERS=3 -DSLOTS=2 table.pml
//	gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c    # assertions
//	./pan -m100000
//	gcc -O2 -DNP -DCOLLAPSE -o pan pan.c        # and progress
//	./pan -m100000 -l
//	spin -t -DTAKERS=3 -DSLOTS=2 table.pml      # the schedule of a failure, step by step
package model
