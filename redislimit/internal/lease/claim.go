package lease

import "github.com/weir-go/weir/internal/word"

// A Claim decides which caller may send the store a question about a hold, or about the places of a request in flight.
// The zero Claim is open. Its methods may be called from any goroutine and are lock-free.
type Claim struct{ word word.Word }

const (
	claimRenewing = 1 << iota // a renewal is under way
	claimSettled              // the request is over
)

// Settle settles the claim. first reports whether it was open until this call (L6). If send is true, the caller must
// send the settlement to the store at once. If only first is true, a renewal is in progress, and its goroutine sends
// the settlement at the end (L7).
func (c *Claim) Settle() (first, send bool) {
	for {
		w := c.word.Load()
		if w&claimSettled != 0 {
			return false, false
		}
		if c.word.CompareAndSwap(w, w|claimSettled) {
			return true, w&claimRenewing == 0
		}
	}
}

// Renew begins a renewal of the claim, if it returns true. The caller must then call Renewed, even if the renewal
// fails.
func (c *Claim) Renew() bool { return c.word.CompareAndSwap(0, claimRenewing) }

// Renewed ends a renewal. If send is true, the claim was settled meanwhile, and the caller must send the settlement.
func (c *Claim) Renewed() (send bool) {
	for {
		w := c.word.Load()
		if c.word.CompareAndSwap(w, w&^claimRenewing) {
			return w&claimSettled != 0
		}
	}
}
