package lease

import "github.com/weir-go/weir/internal/word"

// A Claim decides which caller may send the store a question about a hold, or about the places of a request in flight.
// It is needed until the request is over. The zero Claim is open. Its methods may be called from any goroutine and are
// lock-free.
type Claim struct{ word word.Word }

const (
	claimRenewing = 1 << iota // a renewal is under way
	claimSettled              // the request is over
)

// Settle ends the claim. The result first reports whether this call ended it (L6). If send is true, this caller must
// send the settlement to the store at once. If send is false, this caller sends nothing, because either another call
// has ended the claim already, or a renewal is in progress. In the second case, the goroutine that renews sends the
// settlement when the renewal ends (L7).
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

// Renew reports whether the caller may renew the claim. If so, the caller must call Renewed when the renewal has ended,
// even if it has failed.
func (c *Claim) Renew() bool { return c.word.CompareAndSwap(0, claimRenewing) }

// Renewed ends a renewal. If send is true, the claim was settled meanwhile, and the caller must send the settlement to
// the store.
func (c *Claim) Renewed() (send bool) {
	for {
		w := c.word.Load()
		if c.word.CompareAndSwap(w, w&^claimRenewing) {
			return w&claimSettled != 0
		}
	}
}
