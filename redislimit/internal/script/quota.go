package script

import (
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/weir-go/weir/engine"
)

// A Quota is the limit of one question, in tokens. Units is the number of units of the state in one token; it is above
// 1 only for token buckets. The zero Quota stands for the limit's own numbers.
type Quota struct{ Tokens, Units uint64 }

// slowdownDivisor bounds the error of the rate of a quota. The rate may be slower than requested by at most a
// thousandth, because a token is rounded up to whole units.
const slowdownDivisor = 1000

// maxTicks is the largest number of units that come back in a microsecond.
const maxTicks = 1_000_000

// makeTicks makes a limit of token buckets that only has quotas. The unit is as small as possible while a double
// represents exactly all that a key may owe.
func (l *Limit) makeTicks(longest time.Duration) error {
	if longest < time.Microsecond || longest > slowestQuota {
		return fmt.Errorf("buckets that fill within %v: want 1µs to %v", longest, slowestQuota)
	}
	if err := l.checkTerms(longest); err != nil {
		return err
	}
	fill := wholeMicros(longest)
	l.num, l.den = 1, 1
	for l.num < maxTicks && l.num*10 <= maxExact/(fill*int64(l.terms.MaxDebt+1)) {
		l.num *= 10
	}
	l.widest = uint64(fill * l.num)
	return nil
}

const slowestQuota = 365 * 24 * time.Hour

// Quota returns the policy p as a quota of the limit, whose policy is limitPolicy. p must be one of these:
//
//   - for a token bucket, a bucket of the same rate and no larger burst
//   - for token buckets of quotas, a bucket that fills within the longest time for which the limit was made
//   - for any other limit, the same policy with another limit, at most the larger of the limit's own and
//     [Terms].MaxQuota
//
// The bucket's rate is never faster than that of p, and slower by at most a thousandth.
func (l *Limit) Quota(limitPolicy, p engine.Policy) (Quota, error) {
	if l.IsInFlight() {
		return Quota{}, errors.New("requests in flight have no quotas in a store")
	}
	if p.Algorithm() != limitPolicy.Algorithm() || p.IsAligned() != limitPolicy.IsAligned() || p.Longest() > 0 ||
		l.window > 0 && l.window != wholeMicros(p.Window()) || !haveSamePeriods(limitPolicy, p) {
		return Quota{}, fmt.Errorf("the limiter's policy is %v: want the same policy with other numbers, engine.Unlimited() or engine.Blocked()", limitPolicy)
	}
	tokens := p.Limit()
	if l.window > 0 {
		if tokens < 1 || tokens > l.widest {
			return Quota{}, fmt.Errorf("limit of %d tokens: this limiter has room for 1 to %d (redislimit.MaxQuota)", tokens, l.widest)
		}
		return Quota{tokens, 1}, nil
	}
	if tokens < 1 || tokens > l.maxLimit {
		return Quota{}, fmt.Errorf("limit of %d tokens: want 1 to %d", tokens, l.maxLimit)
	}
	if p == limitPolicy {
		return Quota{tokens, uint64(l.den)}, nil
	}
	rate, err := perMicrosecond(p.Rate())
	if err != nil {
		return Quota{}, err
	}
	exactUnits := rate.Quo(big.NewRat(l.num, 1), rate) // units per token
	units := new(big.Int).Add(exactUnits.Num(), new(big.Int).Sub(exactUnits.Denom(), big.NewInt(1)))
	units.Quo(units, exactUnits.Denom())
	if l.tokens > 0 && (!units.IsUint64() || units.Uint64() != uint64(l.den)) { // the state has no other units
		return Quota{}, fmt.Errorf("rate %v: the limiter's is %v: want that, or a limiter of engine.TokenBuckets", p.Rate(), limitPolicy.Rate())
	}
	if fullUnits := new(big.Int).Mul(units, new(big.Int).SetUint64(tokens)); fullUnits.Cmp(new(big.Int).SetUint64(l.widest)) > 0 {
		fillTime := time.Duration(l.widest/uint64(l.num)) * time.Microsecond
		return Quota{}, fmt.Errorf("it fills in %v: want at most the %v of %v", p.Window(), fillTime, limitPolicy)
	}
	slowdown := new(big.Rat).Sub(new(big.Rat).SetInt(units), exactUnits)
	if slowdown.Mul(slowdown, big.NewRat(slowdownDivisor, 1)).Cmp(exactUnits) > 0 {
		return Quota{}, fmt.Errorf("rate %v: a token of it is not a whole number of the limiter's %d parts of a "+
			"microsecond to within a thousandth: want a slower rate", p.Rate(), l.num)
	}
	return Quota{tokens, units.Uint64()}, nil
}

// TokenTime returns the time in which one token of a bucket's quota comes back, rounded up.
func (l *Limit) TokenTime(q Quota) time.Duration {
	num := uint64(max(l.num, 1))
	return time.Duration((q.Units*uint64(time.Microsecond) + num - 1) / num)
}

func haveSamePeriods(a, b engine.Policy) bool {
	period, zone, ok := a.Calendar()
	bPeriod, bZone, bOK := b.Calendar()
	return period == bPeriod && zone == bZone && ok == bOK
}

// Accepts reports whether the limit can use a quota that another limit of the same kind has made.
func (l *Limit) Accepts(q Quota) bool {
	switch {
	case q == Quota{}:
		return !l.IsOfQuotas()
	case l.IsInFlight() || q.Tokens < 1 || q.Units < 1:
		return false
	case l.window > 0:
		return q.Tokens <= l.widest && q.Units == 1
	}
	return q.Tokens <= l.widest/q.Units && (l.IsOfQuotas() || q.Units == uint64(l.den))
}

func (l *Limit) quota(a Ask) Quota {
	switch {
	case a.Quota != Quota{}:
		return a.Quota
	case l.window > 0:
		return Quota{l.tokens, 1}
	}
	return Quota{l.tokens, uint64(l.den)}
}
