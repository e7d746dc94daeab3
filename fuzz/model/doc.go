// Package model is the protocol of package shard once more, as a model for the
// checker Spin (table.pml): for bounds that trying the real code cannot reach
// (fuzz/explore), and for readers.
//
// # What is modelled
//
// One window of slots, each a key and a state of tag, version and payload. Takers
// make the steps of Table.Take: hit, insert, publish, settle, and the overflow
// policies evict and refuse. Resetters make those of Table.Reset, sweepers those of
// Table.Sweep, and the watermark is raised by takers and sweepers (R7). In a shared table
// each of these is a process of its own. One taker may be killed before any of its steps; some time
// later the kernel gives back the lock of its seat, and another process may attach to that seat: R17. A step is one
// atomic load, store or compare-and-swap. The bucket is that of an exact rule of one
// token a tick. Within the bounds of a configuration the model chooses in every way
// what the window holds at first, who takes how much of which key, what each clock
// reads, and whose step is next. Every search goes through the whole window: the reaches of R11
// are left to fuzz/explore.
//
// After every write the model asserts
//
//	I1  the bucket as it would be had nothing been forgotten has what is admitted; and
//	    what a key was admitted is at most the burst and what time brought
//	I2  a take is charged to the slot of its own key, every record says what its key
//	    was admitted, a debt has a record, and a refusal is one by the key's own
//	    bucket at the moment of R2
//	I3  no key has two LIVE records
//	I5  no more slots are in CLAIM or TENT than calls are under way or have stopped: none
//	    at the end, and one if a taker has stopped for ever. A killed one holds none when a
//	    sweep has ended that began after its lock was given back
//	I7  what is forgotten as idle is idle, and only eviction and reset forget another
//
// I5 has a second part: with any number of processes stopped anywhere, the others
// finish. Configurations marked "progress" show it. The takes are few and versions may
// not wrap within the bounds, so it is enough that the state space has no cycle at
// all, under no assumption of fairness. Spin is asked for non-progress cycles in a
// model where nothing is labelled as progress.
//
// # Mutants
//
// Every rule can be broken by a macro, and the checker must then find fault, and with
// the invariant that the table of the test names. A model that finds nothing wrong
// with a broken protocol would show nothing.
//
// # What is left out
//
//   - Time on a circle: payloads and times are plain small numbers, nothing leaps, so
//     neither the skew nor the time of the last sweep is modelled. A version that would
//     wrap is an error of the configuration.
//   - Windows that overlap in part. Every key has the same window.
//   - Ticks that are rounded (a round of 1), the policy that admits without a
//     record, Peek, and the counters. An eviction is seen by the model itself.
//   - Memory weaker than sequentially consistent; Go's atomics are not.
//   - That package shard is what the model says. Only reading both shows that; the steps
//     have the order and the names of the code.
//
// # By hand
//
// The test needs spin and gcc (.ci/install spin gcc libc6-dev) and a build tag:
//
//	go test -tags explore -v ./fuzz/model                 the quick configurations and the mutants
//	go test -tags explore -v -timeout 0 ./fuzz/model -large
//
// One configuration, in a directory of its own, with any of the macros at the top of
// table.pml:
//
//	spin -a -DTAKERS=3 -DSLOTS=2 table.pml
//	gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c    # assertions
//	./pan -m100000
//	gcc -O2 -DNP -DCOLLAPSE -o pan pan.c        # and progress
//	./pan -m100000 -l
//	spin -t -DTAKERS=3 -DSLOTS=2 table.pml      # the schedule of a failure, step by step
package model
