package redislimit

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/redislimit/internal/lease"
)

// settleEvery is how often [Limiter.Settle] makes the limiter check its debts.
const settleEvery = 5 * time.Millisecond

// Settle waits until all debts are charged to the store. The debts are tokens that the node's share admitted while the
// store was lost, overdrafts of leases, and costs beyond holds. A program calls it at its end, after the last request.
// The context bounds how long Settle waits. Tokens that are not charged when the process ends can be admitted a second
// time, unless the limiter has [DebtFiles]. If the store is lost, Settle waits until it is back, even after Close. It
// also waits for the debts of closed limiters of the same client and limit, such as the limiters before a reload. The
// error reports how many keys still owe something. After [Client.Close], nothing is charged any more.
func (l *Limiter) Settle(ctx context.Context) error { return l.settleAll(ctx, true) }

// settleAll does the same as Settle. If patient is false, it does not wait for a store that is lost.
func (l *Limiter) settleAll(ctx context.Context, patient bool) error {
	ticker := time.NewTicker(settleEvery)
	defer ticker.Stop()
	for {
		owing, lost := l.owes()
		if patient {
			owing, lost = l.client.limiters.kin.owe(l)
		}
		switch {
		case owing == 0:
			return nil
		case ctx.Err() != nil || owing == lost && !patient:
			return fmt.Errorf("redislimit: the store has not been charged for %d keys: %w", owing,
				cmp.Or(context.Cause(ctx), ErrStore))
		}
		for _, l := range append([]*Limiter{l}, l.tiers...) {
			select {
			case l.hurry <- struct{}{}:
			default:
			}
		}
		select {
		case <-ctx.Done():
		case <-l.client.limiters.kin.ended:
			return fmt.Errorf("redislimit: the store has not been charged for %d keys: the client is closed", owing)
		case <-ticker.C:
		}
	}
}

// owes returns how many keys owe the store something, including keys of tiers. It also returns how many of these keys
// are in a lost part of the store.
func (l *Limiter) owes() (owing, lost int) {
	owing, lost = l.owesHere()
	for _, tier := range l.tiers {
		of, gone := tier.owesHere()
		owing, lost = owing+of, lost+gone
	}
	return owing, lost
}

// owesHere does the same as owes, without the tiers.
func (l *Limiter) owesHere() (owing, lost int) {
	count := func(key string) {
		owing++
		if l.isLost(key) {
			lost++
		}
	}
	for of := range l.owed.Keys {
		count(of.key)
	}
	if l.leases != nil {
		l.leases.Range(func(key string, held *lease.Lease) bool {
			if _, debt := held.Held(); debt > 0 {
				count(key)
			}
			return true
		})
	}
	return owing, lost
}
