package limitertest

import (
	"math/rand/v2"
	"testing"
	"time"
)

// random returns a source of random numbers that are the same in every run.
func (s *suite) random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6c696d6974)) }

// pauses are slightly longer than the usual times after which limiters drop idle keys.
var pauses = []time.Duration{
	time.Second + 1, 10*time.Second + 1, time.Minute + 1, 3*time.Minute + 1, 5*time.Minute + 1, 10*time.Minute + 1,
	30*time.Minute + 1, time.Hour + 1, 12*time.Hour + 1, 24*time.Hour + 1,
}

// bound checks that random requests never get more than the limit allows over any interval.
func (s *suite) bound(t *testing.T) {
	for _, l := range s.limits {
		for seed := range s.seeds(l) {
			s.program(t, l, early, func(p *program) {
				random := s.random(seed)
				p.sleep(time.Duration(random.Int64N(int64(l.Per)))) // begin at any time of an aligned window
				for range 400 {
					n := int64(1)
					if maxCost := s.maxCost(l); random.IntN(4) == 0 {
						n = 1 + random.Int64N(max(maxCost>>random.IntN(12), 1))
					}
					if random.IntN(25) == 0 {
						if !p.drain("k") {
							return
						}
					}
					if _, ok := p.take("k", n); !ok || !p.sleep(p.gap(random, l)) {
						return
					}
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}

// gap returns how long a client waits before its next request.
func (s *suite) gap(random *rand.Rand, l Limit) time.Duration {
	token := max(int64(l.Per)/int64(min(l.Tokens, uint64(l.Per))), 1)
	full := int64(l.Per)
	switch random.IntN(20) {
	case 0, 1, 2, 3, 4, 5:
		return 0
	case 6, 7, 8, 9:
		return time.Duration(random.Int64N(token + 1))
	case 10, 11, 12:
		return time.Duration(random.Int64N(4*token + 1))
	case 13, 14:
		return time.Duration(token + random.Int64N(3) - 1)
	case 15, 16: // wait for the end of a window that begins now, or of an aligned window
		if now := int64(s.now()); random.IntN(2) == 0 {
			full -= now % full
		}
		return max(time.Duration(full+random.Int64N(3)-1), 0)
	case 17:
		return time.Duration(random.Int64N(full) >> random.IntN(40))
	case 18:
		return time.Duration(random.Int64N(full))
	}
	return pauses[random.IntN(len(pauses))]
}

// conforming checks that a request is admitted at the first nanosecond that the limit allows, whatever came before.
func (s *suite) conforming(t *testing.T) {
	for _, l := range s.limits {
		for seed := range s.seeds(l) {
			s.program(t, l, late, func(p *program) {
				random := s.random(100 + seed)
				p.sleep(time.Duration(random.Int64N(int64(l.Per))))
				for range 200 {
					n := int64(1)
					if random.IntN(4) == 0 {
						n = 1 + random.Int64N(max(s.maxCost(l)>>random.IntN(12), 1))
					}
					if !p.conform(random, n) {
						return
					}
					if random.IntN(3) == 0 && !p.sleep(p.gap(random, l)) {
						return
					}
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}

// conform sends a request when the limit first allows it, and sometimes further requests before that time.
func (p *program) conform(random *rand.Rand, n int64) (ok bool) {
	for range random.IntN(4) {
		wait := p.model.Until("k", p.now(), uint64(n))
		if wait == 0 {
			break
		}
		if !p.sleep(time.Duration(random.Int64N(int64(wait)))) {
			return false
		}
		if _, ok = p.take("k", n); !ok {
			return false
		}
	}
	wait := p.model.Until("k", p.now(), uint64(n))
	if wait > 0 {
		wait += p.model.LateBy
	}
	if !p.sleep(wait) {
		return false
	}
	_, ok = p.take("k", n)
	return ok
}
