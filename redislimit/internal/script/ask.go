// Package script is how the store is asked.
package script

import "time"

// An Ask is a question about one key.
type Ask struct {
	Need     uint64 // tokens: as many at least, or none
	Want     uint64 // tokens: and so many at most
	Returned uint64 // tokens that are given back
	Debt     uint64 // tokens that were spent already, charged whatever is left
	Window   int64  // that of the answer which Returned came with
}

// An Answer is the store's.
type Answer struct {
	Granted    uint64        // tokens
	Remaining  uint64        // tokens left after that
	RetryAfter time.Duration // until Need would be there; 0 when it was
	ResetAfter time.Duration // until everything is back
	Window     int64         // the start of the window that Granted is of
}
