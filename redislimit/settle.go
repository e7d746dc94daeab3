package redislimit

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/redislimit/internal/lease"
)

const settleEvery = 5 * time.Millisecond

// Settle waits until all debts are charged to the store, or until the context is done. The debts are tokens that the
// node's share admitted, overdrafts of leases, and costs beyond holds. A program calls Settle at its end, after the
// last request. Otherwise, without [DebtFiles], tokens that are not charged can be admitted a second time.
//
// Settle waits for a lost store, even after Close. It also waits for closed limiters of the same client and limit. The
// error reports how many keys still owe something. After [Client.Close], nothing is charged any more.
func (l *Limiter) Settle(ctx context.Context) error { return l.settleAll(ctx, true) }

// settleAll is Settle, but waits for a lost store only if patient is true.
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

// owes returns how many keys, also of tiers, owe something, and how many of them are in a lost part.
func (l *Limiter) owes() (owing, lost int) {
	owing, lost = l.owesHere()
	for _, tier := range l.tiers {
		of, gone := tier.owesHere()
		owing, lost = owing+of, lost+gone
	}
	return owing, lost
}

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
