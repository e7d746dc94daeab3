// Package explore tries every interleaving of a few calls on a small table: the real
// code of shard and atomicbucket, not a model of it.
//
// Go's atomic operations are sequentially consistent, and the table shares nothing
// but words that are touched by them. So an execution is a sequence of these
// operations, and trying every sequence is trying everything. A build with the tag
// "explore" has a word type that stops before each operation (package internal/word).
// The calls are coroutines; the explorer says which of them does its next operation.
//
//	scenario.go    what is explored: a table, calls made before, and threads of calls
//	scenarios.go   the list of them
//	thread.go      a coroutine that makes calls and stops before every operation
//	world.go       the table, the threads, and one step of one of them
//	shadow.go      what every key owes, had its record never been forgotten
//	invariants.go  what is checked after every step and at the end
//	explorer.go    depth first over the choices, by running again from the start
//
// What is shown is shown for these bounds, and for sequentially consistent atomics:
// compilers and processors are believed to keep their word.
//
// The package is built with the tag only:
//
//	go test -tags explore -v ./fuzz/explore                  the quick scenarios
//	go test -tags explore -v ./fuzz/explore -large   all of them (make explore)
package explore
