//go:build explore

package engine

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/interleave"
)

// stepPolicies has, for every algorithm, the policy of a limiter and of its second tier.
var stepPolicies = [][2]Policy{
	{TokenBucket(PerSecond(1), 20), TokenBucket(Per(1, 700*time.Millisecond), 30)},
	{BatchRefill(3, time.Minute, 20), BatchRefill(3, time.Minute, 30)},
	{FixedWindow(20, time.Minute), FixedWindow(30, time.Minute)},
	{FixedWindow(20, time.Minute).Aligned(), FixedWindow(30, time.Minute).Aligned()},
	{SlidingWindow(20, time.Minute), SlidingWindow(30, time.Minute)},
	{SlidingLog(20, time.Minute), SlidingLog(30, time.Minute)},
	{Concurrency(20, time.Minute), Concurrency(30, time.Minute)},
	pricedSteps,
}

// pricedSteps has the two policies for a limiter of [TokenBuckets].
var pricedSteps = [2]Policy{TokenBucket(PerSecond(1), 21), TokenBucket(Per(1, 700*time.Millisecond), 30)}

// A step has the limiter of one execution, and a key under its second tier.
type step struct {
	*Limiter
	key Key
	own Quota // of the first policy, if that is a quota; the zero Quota is the limiter's own policy
	// priced is true if a token has different prices under the two policies.
	priced bool
	// waiting is true if a caller waits in line. A refused request may then wait longer than if the calls came one
	// after the other.
	waiting bool
	// again makes another step with the same policies, in which no request waits.
	again func() step
}

// forEachStep repeats a call, each time with another call just before a different operation on a shared word.
func forEachStep(t *testing.T, make func(t *testing.T, s step) (call, other func(), check func(what string))) {
	for _, p := range stepPolicies {
		t.Run(p[0].String(), func(t *testing.T) {
			var again func() step
			again = func() step {
				now := time.Unix(1_700_000_000, 0)
				own := p[0]
				if p == pricedSteps {
					own = TokenBuckets(time.Hour)
				}
				l, err := New(own, Tiers(p[1]), MaxKeys(10), Shards(1), SweepInterval(24*time.Hour), ClockFunc(func() time.Time { return now }))
				require.NoError(t, err)
				t.Cleanup(func() { l.Close() })
				var quota Quota
				if p == pricedSteps {
					quota, err = l.Quota(p[0])
					require.NoError(t, err)
				}
				return step{l, l.KeyUint64(1).Tier(1), quota, own.algorithm == AlgorithmTokenBucket, false, again}
			}
			interleave.Inject(func() (call, other func(), check func(string)) { return make(t, again()) })
		})
	}
}

// TestAReceiptIsOfItsTakeAtEveryStep (I1): a receipt never gives back tokens of a concurrent call.
func TestAReceiptIsOfItsTakeAtEveryStep(t *testing.T) {
	type back = func()
	verbs := map[string]func(s step) back{
		"receipt": func(s step) back {
			d, r := s.TakeReceipt(s.key, 3)
			require.True(t, d.Allowed)
			return func() { r.Refund(3) }
		},
		"hold": func(s step) back {
			d, h := s.Hold(s.key, 3)
			require.True(t, d.Allowed)
			return func() { h.Settle(0) }
		},
		"hold of the limit": func(s step) back {
			d, h := s.Hold(s.key, math.MaxUint64)
			if !d.Allowed {
				return func() {}
			}
			return func() { h.Settle(0) }
		},
		"hold up to": func(s step) back {
			d, h := s.HoldUpTo(s.key, 3, 3)
			require.True(t, d.Allowed)
			return func() { h.Settle(0) }
		},
		"enter": func(s step) back {
			d, e := s.TakeReceipt(s.key, 3)
			require.True(t, d.Allowed)
			return func() { e.Release() }
		},
		"all": func(s step) back {
			answers := [2]Answer{}
			ok, err := TakeAll([]Request{{Limiter: s.Limiter, Key: s.key, N: 3}, {Limiter: s.Limiter, Key: s.KeyUint64(2).Tier(1), N: 3}}, answers[:])
			require.NoError(t, err)
			require.True(t, ok)
			return func() { answers[0].Receipt.Refund(3) }
		},
		"reservation": func(s step) back {
			r, err := s.ahead(s.key, 3, time.Hour)
			if err != nil {
				return func() {}
			}
			return func() { r.Refund(3) }
		},
	}
	for name, verb := range verbs {
		for _, fresh := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, fresh %v", name, fresh), func(t *testing.T) {
				forEachStep(t, func(t *testing.T, s step) (call, other func(), check func(string)) {
					if !fresh {
						require.True(t, s.TakeKey(s.key, 1).Allowed)
					}
					var giveBack back
					return func() { giveBack = verb(s) },
						func() {
							s.Reset(s.key)
							require.True(t, s.TakeKey(s.key, 3).Allowed)
						},
						func(what string) {
							giveBack()
							// A reset that comes before the take may void the receipt.
							require.Contains(t, []uint64{24, 27}, s.Peek(s.key, 1).Remaining, what)
						}
				})
			})
		}
	}
}

// TestWhatEndsEndsOnceAtEveryStep (I2): if two concurrent calls end one receipt, tokens that a third call has taken
// stay taken.
func TestWhatEndsEndsOnceAtEveryStep(t *testing.T) {
	for name, of := range map[string]func(s step) (end func()){
		"entry": func(s step) func() {
			_, e := s.TakeReceipt(s.key, 3)
			return func() { e.Release() }
		},
		"hold": func(s step) func() {
			_, h := s.Hold(s.key, 3)
			return func() { h.Settle(0) }
		},
		"cancelled hold": func(s step) func() {
			_, h := s.Hold(s.key, 3)
			return func() { h.Release() }
		},
		"hold that costs more": func(s step) func() {
			_, h := s.Hold(s.key, 3)
			ends := 0
			return func() {
				h.Settle(5)
				if ends++; ends == 1 { // the call that returns first gives the cost back by hand
					s.Refund(s.key, 5)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			forEachStep(t, func(t *testing.T, s step) (call, other func(), check func(string)) {
				end := of(s)
				require.True(t, s.TakeKey(s.key, 10).Allowed)
				return end, end, func(what string) {
					require.Equal(t, uint64(20), s.Peek(s.key, 1).Remaining, what)
				}
			})
		})
	}
}

// TestAQuotaIsOfOnePlanAtEveryStep (I1): a quota made while the policy changes is right for one of the two policies, or
// grants nothing.
func TestAQuotaIsOfOnePlanAtEveryStep(t *testing.T) {
	for _, changes := range []int{1, 2} {
		interleave.Inject(func() (call, other func(), check func(string)) {
			now := time.Unix(1_700_000_000, 0)
			policies := []Policy{TokenBucket(PerSecond(1), 5), TokenBucket(Per(16, 15*time.Microsecond), 5)}
			l, err := New(policies[0], MaxKeys(10), MaxQuota(2), Shards(1), SweepInterval(24*time.Hour), ClockFunc(func() time.Time { return now }))
			require.NoError(t, err)
			t.Cleanup(func() { l.Close() })
			var q Quota
			return func() {
					q, err = l.Quota(TokenBucket(Per(1, 3*time.Second), 2))
					require.NoError(t, err)
				},
				func() {
					for i := range changes {
						require.NoError(t, l.SetPolicy(policies[(i+1)%2]))
					}
				},
				func(what string) {
					k := l.KeyUint64(1).With(q)
					if d := l.TakeKey(k, 2); d.RetryAfter != Never {
						require.True(t, d.Allowed, what)
						require.Equal(t, Decision{Limit: 2, RetryAfter: 3 * time.Second, ResetAfter: 6 * time.Second}, l.Peek(k, 1), what)
					}
				}
		})
	}
}

// stepVerbs are the calls that are atomic: a concurrent call sees either all of their effect or nothing. Each function
// returns the call's answer.
var stepVerbs = map[string]func(s step) any{
	"allow":    func(s step) any { return s.AllowKey(s.key) },
	"take":     func(s step) any { return s.TakeKey(s.key, 3) },
	"take all": func(s step) any { return s.TakeKey(s.key, 30) },
	"too much": func(s step) any { return s.TakeKey(s.key, 31).RetryAfter },
	"take at":  func(s step) any { return s.TakeAt(s.key, 3, time.Unix(1_700_000_000, 0)) },
	"receipt":  func(s step) any { d, _ := s.TakeReceipt(s.key, 3); return d },
	"hold":     func(s step) any { d, _ := s.Hold(s.key, 3); return d },
	"enter":    func(s step) any { d, _ := s.TakeReceipt(s.key, 3); return d },
	"peek":     func(s step) any { return s.Peek(s.key, 3) },
	"refund":   func(s step) any { s.Refund(s.key, 3); return nil },
	"reset":    func(s step) any { s.Reset(s.key); return nil },
	"sweep":    func(s step) any { s.Sweep(); return nil },
	"charge":   func(s step) any { d, lost := s.Charge(s.key, 28); return []any{d, lost} },
	"own limit": func(s step) any {
		d := s.TakeKey(s.key.With(s.own), 3)
		if s.priced && s.waiting {
			d.RetryAfter, d.ResetAfter = 0, 0
		}
		return d
	},
	"reserve": func(s step) any {
		r, err := s.ahead(s.key, 29, time.Hour)
		if err != nil {
			return err.Error()
		}
		if s.priced { // only whether it waits is compared, not how long
			return true
		}
		return r.delay
	},
}

// outcomeOf returns the answers of two calls together with the state of the key.
func outcomeOf(s step, call, other any) any {
	own, tier := s.Peek(s.key.With(s.own), 1), s.Peek(s.key, 1)
	if s.priced { // if two prices were used at once, tokens may come back at either price
		own.RetryAfter, own.ResetAfter, tier.RetryAfter, tier.ResetAfter = 0, 0, 0, 0
	}
	return [4]any{call, other, own, tier}
}

// requireOneAfterTheOther asserts that two concurrent calls have the effect of the same calls one after the other.
func requireOneAfterTheOther(t *testing.T, call, other func(s step) any, prepare func(t *testing.T, s *step) bool) {
	forEachStep(t, func(t *testing.T, s step) (func(), func(), func(string)) {
		one, two := s.again(), s.again()
		if !prepare(t, &s) || !prepare(t, &one) || !prepare(t, &two) {
			t.Skip("there is no such situation")
		}
		a, b := call(one), other(one)
		want := []any{outcomeOf(one, a, b)}
		b, a = other(two), call(two)
		want = append(want, outcomeOf(two, a, b))
		var x, y any
		return func() { x = call(s) }, func() { y = other(s) },
			func(what string) { require.Contains(t, want, outcomeOf(s, x, y), what) }
	})
}

// TestVerbsBesideEachOtherAtEveryStep (I2, I9): two concurrent calls for one key have the effect of the same calls one
// after the other.
func TestVerbsBesideEachOtherAtEveryStep(t *testing.T) {
	for name, call := range stepVerbs {
		for otherName, other := range stepVerbs {
			t.Run(name+" beside "+otherName, func(t *testing.T) {
				for _, fresh := range []bool{true, false} {
					requireOneAfterTheOther(t, call, other, func(t *testing.T, s *step) bool {
						return fresh || s.TakeKey(s.key, 4).Allowed
					})
				}
			})
		}
	}
}

func (s *step) under(t *testing.T, quota bool) {
	s.key = s.key.Tier(0)
	if s.priced && s.Policy(0).grant == grantsQuotas {
		s.key = s.key.Tier(1)
	}
	if !quota {
		return
	}
	p := s.Policy(1)
	p.limit = 25
	if p.algorithm == AlgorithmTokenBucket {
		p.rate = Per(1, 1300*time.Millisecond)
	}
	q, err := s.Quota(p)
	require.NoError(t, err)
	s.key = s.key.With(q)
}

func (s *step) change(t *testing.T) {
	own, tier := s.Policy(0), s.Policy(1)
	tier.limit = 28
	if own.grant != grantsQuotas {
		own.limit = 19
	}
	if own.algorithm == AlgorithmTokenBucket {
		tier.rate = Per(1, 500*time.Millisecond)
	}
	require.NoError(t, s.SetPolicy(own, tier))
}

// waits makes a caller wait for tokens of the key. It returns false if no caller can wait.
func (s *step) waits() bool {
	if !s.TakeKey(s.key, s.Peek(s.key, 0).Remaining).Allowed {
		return false
	}
	r, err := s.ahead(s.key, 2, time.Hour)
	s.waiting = err == nil && r.delay > 0
	return s.waiting
}

// TestVerbsUnderEverythingAtEveryStep (I2, I9): a call that is concurrent with a take, a charge or a reset has the same
// effect as before or after it.
func TestVerbsUnderEverythingAtEveryStep(t *testing.T) {
	for name, call := range stepVerbs {
		for _, otherName := range []string{"take", "charge", "reset"} {
			for situation := range 8 {
				quota, changed, waiting := situation&1 > 0, situation&2 > 0, situation&4 > 0
				t.Run(fmt.Sprintf("%s beside %s, quota %v, changed %v, waiting %v", name, otherName, quota, changed, waiting), func(t *testing.T) {
					requireOneAfterTheOther(t, call, stepVerbs[otherName], func(t *testing.T, s *step) bool {
						require.True(t, s.TakeKey(s.key, 4).Allowed)
						if changed {
							s.change(t)
						}
						s.under(t, quota)
						require.True(t, s.TakeKey(s.key, 1).Allowed)
						return !waiting || s.waits()
					})
				})
			}
		}
	}
}
