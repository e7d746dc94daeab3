// Package interleave tries every interleaving of a few calls of lock-free code. It runs the real code, not a model of
// the code.
//
// Go's atomic operations are sequentially consistent. If only these operations access the words that goroutines share,
// an execution is a sequence of operations. So if every sequence is tried, every execution is covered. A build with the
// tag "explore" has word types that stop before each operation (package internal/word). The calls are coroutines
// ([Thread]). A depth-first search ([Explore]) decides which call makes its next operation. A [World] has the code
// under test and the conditions that must hold after every step.
//
//	search.go   the depth-first search, which runs again from the start for each choice
//	thread.go   a coroutine that makes calls and stops before every operation
//	hash.go     hashes that distinguish states
//	report.go   an exploration as a test that prints one line
//	mutant.go   builds the code with a broken rule, by the build's overlay, and checks that a test catches it
//	inject.go   a call with another call before each of its operations
//
// All files other than this file are built only with the tag. fuzz/explore explores the table in this way, and
// redislimit/internal/lease explores the lease.
package interleave
