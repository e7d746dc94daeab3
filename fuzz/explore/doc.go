// Package explore tries every interleaving of a few calls on a small table. It runs the real code of shard and
// atomicbucket, not a model of the code.
//
// Package internal/interleave has the search: calls are coroutines that stop before each operation on a word, and the
// search chooses the next call to continue. This package has the parts that are specific to the table.
//
//	scenario.go      what is explored: a table, calls made before, and threads of calls
//	scenarios.go     the list of scenarios
//	thread.go        what is known about a thread and its current call
//	world.go         the table, the threads, and one step of one thread
//	mortal.go        threads that are processes of a shared table, of which one may die
//	shadow.go        what every key would owe if its record had never been forgotten
//	shadowbucket.go  charges to a bucket
//	shadowlog.go     the content of a log, and tokens in flight
//	invariants.go    what is checked after every step and at the end
//	explorer.go      the search
//
// The results are valid within the bounds of the scenarios. They assume that compilers and processors provide
// sequentially consistent atomics.
//
// The package is built only with the tag explore:
//
//	go test -tags explore -v ./fuzz/explore -short   the first 5,000 schedules of each quick scenario
//	go test -tags explore -v ./fuzz/explore          the quick scenarios
//	go test -tags explore -v ./fuzz/explore -large   all of them (make explore)
package explore
