package lease

import "github.com/weir-go/weir/internal/word"

// A Claim is what a request has in the store until it is over: a hold, or places in flight. It says who may ask the
// store about it. The zero Claim is open. Its methods may be called from any goroutine and are lock-free.
type Claim struct{ word word.Word }

const (
	claimRenewing = 1 << iota // a renewal is under way
	claimSettled              // the request is over
)

// Settle ends the claim. first is for the caller that ended it (L6). Only if send is true may that one ask the store at
// once. Otherwise a renewal is under way, and whoever made that asks at its end (L7).
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

// Renew reports whether the caller may renew the claim. It then has to call Renewed, whatever becomes of that.
func (c *Claim) Renew() bool { return c.word.CompareAndSwap(0, claimRenewing) }

// Renewed ends a renewal. If send is true the claim was settled meanwhile, and the caller has to ask the store for
// that.
func (c *Claim) Renewed() (send bool) {
	for {
		w := c.word.Load()
		if c.word.CompareAndSwap(w, w&^claimRenewing) {
			return w&claimSettled != 0
		}
	}
}
