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

// settleAll is Settle, but waits for a lost store only if waitForLost is true. Only then does it also wait for closed
// limiters.
func (l *Limiter) settleAll(ctx context.Context, waitForLost bool) error {
	ticker := time.NewTicker(settleEvery)
	defer ticker.Stop()
	for {
		keys, lostKeys := l.countAllDebts()
		if waitForLost {
			keys, lostKeys = l.client.limiters.registry.countDebts(l)
		}
		switch {
		case keys == 0:
			return nil
		case ctx.Err() != nil || keys == lostKeys && !waitForLost:
			return fmt.Errorf("redislimit: the store has not been charged for %d keys: %w", keys,
				cmp.Or(context.Cause(ctx), ErrStore))
		}
		for _, l := range append([]*Limiter{l}, l.tiers...) {
			select {
			case l.wake <- struct{}{}:
			default:
			}
		}
		select {
		case <-ctx.Done():
		case <-l.client.limiters.registry.ended:
			return fmt.Errorf("redislimit: the store has not been charged for %d keys: the client is closed", keys)
		case <-ticker.C:
		}
	}
}

// countAllDebts returns how many keys of the limiter and its tiers owe something, and how many of them are in a lost
// part.
func (l *Limiter) countAllDebts() (keys, lostKeys int) {
	keys, lostKeys = l.countDebts()
	for _, tier := range l.tiers {
		n, nLost := tier.countDebts()
		keys, lostKeys = keys+n, lostKeys+nLost
	}
	return keys, lostKeys
}

func (l *Limiter) countDebts() (keys, lostKeys int) {
	count := func(key string) {
		keys++
		if l.isLost(key) {
			lostKeys++
		}
	}
	for id := range l.debts.Keys {
		count(id.key)
	}
	if l.leases != nil {
		l.leases.Range(func(key string, keyLease *lease.Lease) bool {
			if _, debt := keyLease.Balance(); debt > 0 {
				count(key)
			}
			return true
		})
	}
	return keys, lostKeys
}
