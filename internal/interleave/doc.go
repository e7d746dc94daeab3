// Package interleave tries every interleaving of a few calls of lock-free code: the real code, not
// a model of it.
//
// Go's atomic operations are sequentially consistent. Where code shares nothing but words that are
// touched by them, an execution is a sequence of these operations, and trying every sequence
// is trying everything. A build with the tag "explore" has word types that stop before each
// operation (package internal/word). The calls are coroutines ([Thread]); a depth first search
// ([Explore]) says which of them does its next operation. What is under test, and what must hold
// of it after every step, is a [World].
//
//	search.go   depth first over the choices, by running again from the start
//	thread.go   a coroutine that makes calls and stops before every operation
//	hash.go     what states are told apart by
//	report.go   exploring as a test, a printed line each
//	mutant.go   the code with a rule broken, by the build's overlay: a test that catches it
//	inject.go   one call, with another one before each of its operations
//
// All but this file is built with the tag only. fuzz/explore explores the table so, and
// redislimit/internal/lease the lease.
package interleave
