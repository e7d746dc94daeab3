// Package explore tries every interleaving of a few calls on a small table: the real
// code of shard and atomicbucket, not a model of it.
//
// How that is done is said in package internal/interleave: the calls are coroutines that stop before each
// operation on a word, and a search says which of them does its next. Here is what is particular to the table.
//
//	scenario.go      what is explored: a table, calls made before, and threads of calls
//	scenarios.go     the list of them
//	thread.go        what is known of a thread and its present call
//	world.go         the table, the threads, and one step of one of them
//	mortal.go        threads that are processes of a shared table, of which one may die
//	shadow.go        what every key owes, had its record never been forgotten
//	shadowbucket.go  what a bucket is charged
//	shadowlog.go     what a log has, and what is in flight
//	invariants.go    what is checked after every step and at the end
//	explorer.go      the search
//
// What is shown is shown for these bounds, and for sequentially consistent atomics:
// compilers and processors are believed to keep their word.
//
// The package is built with the tag only:
//
//	go test -tags explore -v ./fuzz/explore                  the quick scenarios
//	go test -tags explore -v ./fuzz/explore -large   all of them (make explore)
package explore
