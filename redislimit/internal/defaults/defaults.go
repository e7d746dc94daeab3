// Package defaults contains the numbers by which limiters work, for package redislimit and its simulator.
package defaults

import (
	"time"

	"github.com/weir-go/weir/redislimit/internal/script"
)

const (
	Prefix     = "weir"
	Partitions = 64
	Timeout    = 50 * time.Millisecond
	BreakAfter = 200 * time.Millisecond // time without an answer
)

const (
	Nodes     = 4
	Overdraft = 8
	MaxKeys   = 100_000
	Trust     = KeepEvery // how long a refusal is trusted
)

// KeepEvery is how often a limiter checks its leases, its debts and a lost store. It is also the lifetime of a lease.
const KeepEvery = 100 * time.Millisecond

const (
	PerCall      = script.MaxKeys // questions in one call
	MaxCalls     = 8              // calls at the same time, full or not
	MaxFullCalls = 128            // calls at the same time, if each is full
	Waiting      = 4096           // if more questions wait, those for which no caller waits are removed
	BusyAbove    = Waiting / 2    // if more questions wait, those that are not urgent are put off
)
