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

// The rate of a quota may be slower than requested by at most a thousandth, because a token is rounded up to whole
// units.
const slower = 1000

const finest = 1_000_000

// makeTicks makes a limit of token buckets that only has quotas. The unit is as small as possible while a double
// represents exactly all that a key may owe.
func (l *Limit) makeTicks(longest time.Duration) error {
	if longest < time.Microsecond || longest > slowestQuota {
		return fmt.Errorf("buckets that fill within %v: want 1µs to %v", longest, slowestQuota)
	}
	if err := l.checkTerms(longest); err != nil {
		return err
	}
	fill := whole(longest)
	l.num, l.den = 1, 1
	for l.num < finest && l.num*10 <= exactly/(fill*int64(l.terms.MaxDebt+1)) {
		l.num *= 10
	}
	l.widest = uint64(fill * l.num)
	return nil
}

const slowestQuota = 365 * 24 * time.Hour

// Quota returns a policy as a quota of the limit, whose policy is own. p must be one of these:
//
//   - for a token bucket, a bucket of the same rate and no larger burst
//   - for token buckets of quotas, a bucket that fills within the longest time for which the limit was made
//   - for any other limit, the same policy with another limit, at most the larger of the limit's own and
//     [Terms].MaxQuota
//
// The bucket's rate is never faster than that of p, and slower by at most a thousandth.
func (l *Limit) Quota(own, p engine.Policy) (Quota, error) {
	if l.IsInFlight() {
		return Quota{}, errors.New("requests in flight have no quotas in a store")
	}
	if p.Algorithm() != own.Algorithm() || p.IsAligned() != own.IsAligned() || p.Longest() > 0 ||
		l.window > 0 && l.window != whole(p.Window()) || !haveSamePeriods(own, p) {
		return Quota{}, fmt.Errorf("the limiter's policy is %v: want the same policy with other numbers, engine.Unlimited() or engine.Blocked()", own)
	}
	tokens := p.Limit()
	if l.window > 0 {
		if tokens < 1 || tokens > l.widest {
			return Quota{}, fmt.Errorf("limit of %d tokens: this limiter has room for 1 to %d (redislimit.MaxQuota)", tokens, l.widest)
		}
		return Quota{tokens, 1}, nil
	}
	if tokens < 1 || tokens > l.most {
		return Quota{}, fmt.Errorf("limit of %d tokens: want 1 to %d", tokens, l.most)
	}
	if p == own {
		return Quota{tokens, uint64(l.den)}, nil
	}
	rate, err := perMicrosecond(p.Rate())
	if err != nil {
		return Quota{}, err
	}
	exact := rate.Quo(big.NewRat(l.num, 1), rate) // units per token
	units := new(big.Int).Add(exact.Num(), new(big.Int).Sub(exact.Denom(), big.NewInt(1)))
	units.Quo(units, exact.Denom())
	if l.tokens > 0 && (!units.IsUint64() || units.Uint64() != uint64(l.den)) { // the state has no other units
		return Quota{}, fmt.Errorf("rate %v: the limiter's is %v: want that, or a limiter of engine.TokenBuckets", p.Rate(), own.Rate())
	}
	if all := new(big.Int).Mul(units, new(big.Int).SetUint64(tokens)); all.Cmp(new(big.Int).SetUint64(l.widest)) > 0 {
		fills := time.Duration(l.widest/uint64(l.num)) * time.Microsecond
		return Quota{}, fmt.Errorf("it fills in %v: want at most the %v of %v", p.Window(), fills, own)
	}
	late := new(big.Rat).Sub(new(big.Rat).SetInt(units), exact)
	if late.Mul(late, big.NewRat(slower, 1)).Cmp(exact) > 0 {
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
	per, zone, ok := a.Calendar()
	of, in, is := b.Calendar()
	return per == of && zone == in && ok == is
}

// Holds reports whether the limit can use a quota that another limit of the same kind has made.
func (l *Limit) Holds(q Quota) bool {
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
