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
	most := atomicbucket.Most(bucket)
	switch {
	case !bucket.HasPrices():
		return most / bucket.Quota().Token
	case !bucket.Exact():
		most -= spareTicks
	}
	return uint64(bucket.Span(most))
}

// anyQuota is what the table of a limiter with windows remembers for every quota: keys may have limits other than the
// limits of the tiers. It is not a size.
const anyQuota = math.MaxInt64

// extent returns how much of a record's capacity a debt under a quota may use, or 0 if every bucket has room.
func extent(bucket *atomicbucket.TokenBucket, q atomicbucket.Quota) (needs uint64) {
	always := bucket.Quota().Tokens
	if needs = q.Tokens; bucket.HasPrices() {
		needs, always = uint64(bucket.Wait(0, q.Token*q.Tokens)), uint64(atomicbucket.ShortestRoom)
	}
	if needs <= always {
		return 0
	}
	return needs
}

// remembers makes the table remember a possible debt under a quota, and reports whether the table already did. If not,
// the quota must be made again, because the policy may have changed meanwhile.
func (l *Limiter) remembers(needs uint64) (bool, error) {
	if needs <= l.table.Largest() {
		return true, nil
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	return false, retried(func() bool { return l.table.Remember(needs, l.clock.surely) })
}

// roomy returns the bucket, with longer ticks if its records have no room for what keys may owe under quotas.
func (ps policies) roomy(bucket *atomicbucket.TokenBucket) (*atomicbucket.TokenBucket, error) {
	if capacity(bucket) >= ps.quotas {
		return bucket, nil
	}
	var longer atomicbucket.TokenBucket
	var err error
	base := ps.base
	switch {
	case !bucket.HasPrices():
		longer, err = atomicbucket.NewRoomyBucket(base.rate.Tokens, base.rate.Period, base.limit, ps.quotas)
	case base.isFixed() || base.grant == grantsQuotas:
		longer, err = atomicbucket.NewTicks(min(time.Duration(ps.quotas), atomicbucket.MaxWindow))
	default:
		tokens := math.Ceil(float64(ps.quotas)/float64(base.rate.Period)*base.rate.Tokens) + 1
		longer, err = atomicbucket.NewRoomyBucket(base.rate.Tokens, base.rate.Period, base.limit, max(ps.room[0], uint64(tokens*(1+1e-9))))
		longer = *longer.Priced()
	}
	if err == nil {
		err = ps.fits(&longer)
	}
	if err != nil {
		return nil, fmt.Errorf("engine: %v: %w", base, err)
	}
	return &longer, nil
}

func (ps policies) fits(bucket *atomicbucket.TokenBucket) error {
	has := capacity(bucket)
	switch {
	case has >= ps.quotas:
		return nil
	case !bucket.HasPrices():
		return fmt.Errorf("a key may still owe %d tokens of a quota, and a record has room for %d at this rate", ps.quotas, has)
	}
	return fmt.Errorf("what a key still owes under a quota may take %v to come back, and a record has room for %v at this rate: "+
		"want at most %.0f tokens a second", time.Duration(ps.quotas), time.Duration(has),
		float64(atomicbucket.Most(bucket))/time.Duration(ps.quotas).Seconds())
}

// known returns ps with the largest debt under a quota that the table remembers.
func (ps policies) known(table *shard.Table) policies {
	ps.quotas = max(ps.quotas, table.Largest())
	return ps
}
