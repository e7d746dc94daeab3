// Package defaults has the numbers by which limiters work: those that an option may change, and those that are fixed.
// Package redislimit uses them and package sim simulates them.
package defaults

import (
	"time"

	"github.com/weir-go/weir/redislimit/internal/script"
)

// Of a client, unless an option says otherwise.
const (
	Prefix     = "weir"
	Partitions = 64
	Timeout    = 50 * time.Millisecond
	BreakAfter = 200 * time.Millisecond // without an answer
)

// Of a limiter, unless an option says otherwise.
const (
	Nodes     = 4
	Overdraft = 8
	MaxKeys   = 100_000
	Trust     = KeepEvery // a refusal
)

// KeepEvery is how often a limiter checks its leases, what its shares owe, and a lost store: once in the lifetime of a
// lease.
const KeepEvery = 100 * time.Millisecond

// Of a queue of questions to the store.
const (
	PerCall   = script.MaxKeys // questions in one call
	UnderWay  = 8              // calls at the same time, full or not
	MostCalls = 128            // calls at the same time, if each is full
	Waiting   = 4096           // questions that wait, before those that are given up are taken out
	BusyAbove = Waiting / 2    // questions that wait: what can be put off is put off then
)
