package engine

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// After a change of the policy, records must have room for what keys owe under quotas. The limiter does not know which
// quotas exist, but the table remembers the largest one that was ever made.

// spareTicks is the number of ticks that rounding may add when a debt is converted.
const spareTicks = 3

// capacity returns how large a debt may be for a record to have room for it. The unit is nanoseconds if records store
// prices, and tokens otherwise.
func capacity(bucket *atomicbucket.TokenBucket) uint64 {
	maxTicks := atomicbucket.Most(bucket)
	switch {
	case !bucket.HasPrices():
		return maxTicks / bucket.Quota().Token
	case !bucket.Exact():
		maxTicks -= spareTicks
	}
	return uint64(bucket.Span(maxTicks))
}

// anyQuota is what the table of a limiter with windows remembers for every quota: keys may have limits other than the
// limits of the tiers. It is not a size.
const anyQuota = math.MaxInt64

// extent returns how much of a record's capacity a debt under a quota may use, or 0 if every record has room for it.
func extent(bucket *atomicbucket.TokenBucket, q atomicbucket.Quota) (need uint64) {
	minRoom := bucket.Quota().Tokens
	if need = q.Tokens; bucket.HasPrices() {
		need, minRoom = uint64(bucket.Wait(0, q.Token*q.Tokens)), uint64(atomicbucket.ShortestRoom)
	}
	if need <= minRoom {
		return 0
	}
	return need
}

// remember makes the table remember how much capacity quotas need. If the table already remembers as much, remember
// returns true. Otherwise the quota must be made again, because the policy may have changed meanwhile.
func (l *Limiter) remember(need uint64) (bool, error) {
	if need <= l.table.Largest() {
		return true, nil
	}
	l.policyMu.Lock()
	defer l.policyMu.Unlock()
	return false, retry(func() bool { return l.table.Remember(need, l.clock.exactNanos) })
}

// makeRoom returns the bucket, with longer ticks if its records have no room for what keys may owe under quotas.
func (s policySet) makeRoom(bucket *atomicbucket.TokenBucket) (*atomicbucket.TokenBucket, error) {
	if capacity(bucket) >= s.quotaDebt {
		return bucket, nil
	}
	var longer atomicbucket.TokenBucket
	var err error
	base := s.base
	switch {
	case !bucket.HasPrices():
		longer, err = atomicbucket.NewRoomyBucket(base.rate.Tokens, base.rate.Period, base.limit, s.quotaDebt)
	case base.isFixed() || base.grant == grantsQuotas:
		longer, err = atomicbucket.NewTicks(min(time.Duration(s.quotaDebt), atomicbucket.MaxWindow))
	default:
		tokens := math.Ceil(float64(s.quotaDebt)/float64(base.rate.Period)*base.rate.Tokens) + 1
		longer, err = atomicbucket.NewRoomyBucket(base.rate.Tokens, base.rate.Period, base.limit, max(s.highest[0], uint64(tokens*(1+1e-9))))
		longer = *longer.Priced()
	}
	if err == nil {
		err = s.checkRoom(&longer)
	}
	if err != nil {
		return nil, fmt.Errorf("engine: %v: %w", base, err)
	}
	return &longer, nil
}

// checkRoom returns an error if the records of a bucket have no room for what keys may owe under quotas.
func (s policySet) checkRoom(bucket *atomicbucket.TokenBucket) error {
	room := capacity(bucket)
	switch {
	case room >= s.quotaDebt:
		return nil
	case !bucket.HasPrices():
		return fmt.Errorf("a key may still owe %d tokens of a quota, and a record has room for %d at this rate", s.quotaDebt, room)
	}
	return fmt.Errorf("what a key still owes under a quota may take %v to come back, and a record has room for %v at this rate: "+
		"want at most %.0f tokens a second", time.Duration(s.quotaDebt), time.Duration(room),
		float64(atomicbucket.Most(bucket))/time.Duration(s.quotaDebt).Seconds())
}

// withLargestDebt returns s with the largest debt under a quota that the table remembers.
func (s policySet) withLargestDebt(table *shard.Table) policySet {
	s.quotaDebt = max(s.quotaDebt, table.Largest())
	return s
}
