// Package defaults contains numbers that determine how limiters work. Options can change some of them, and the others
// are fixed. Package redislimit uses these numbers, and package sim simulates limiters with them.
package defaults

import (
	"time"

	"github.com/weir-go/weir/redislimit/internal/script"
)

// Defaults of a client's options.
const (
	Prefix     = "weir"
	Partitions = 64
	Timeout    = 50 * time.Millisecond
	BreakAfter = 200 * time.Millisecond // time without an answer
)

// Defaults of a limiter's options.
const (
	Nodes     = 4
	Overdraft = 8
	MaxKeys   = 100_000
	Trust     = KeepEvery // how long a refusal is trusted
)

// KeepEvery is how often a limiter checks its leases and the debts of its shares, and whether a lost store is back. The
// lifetime of a lease is equally long, so each lease is checked once in its lifetime.
const KeepEvery = 100 * time.Millisecond

// Numbers of a queue of requests to the store.
const (
	PerCall   = script.MaxKeys // questions in one call
	UnderWay  = 8              // calls at the same time, full or not
	MostCalls = 128            // calls at the same time, if each is full
	Waiting   = 4096           // if more questions are in a queue, questions for which no caller waits are removed
	BusyAbove = Waiting / 2    // if more questions are in a queue, questions that are not urgent are put off
)
