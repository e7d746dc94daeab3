package limitertest

import (
	"testing"
	"time"
)

// clock checks the smallest and the largest steps of time, and callers whose time goes back.
func (s *suite) clock(t *testing.T) {
	for _, l := range s.limits {
		s.crawl(t, l)
		if !t.Failed() {
			s.leap(t, l)
		}
		if !t.Failed() {
			s.goBack(t, l)
		}
		if t.Failed() {
			return
		}
	}
}

// crawl sends requests for a drained key at tiny intervals. In each interval, much less than a token comes back. In all
// intervals together, several tokens come back.
func (s *suite) crawl(t *testing.T, l Limit) {
	token := max(l.Per/time.Duration(min(l.Tokens, uint64(l.Per))), 1)
	for _, step := range []time.Duration{1, token/300 + 1, token/7 + 1, token/2 + 1} {
		s.program(t, l, early|late, func(p *program) {
			for ok := p.drain("k"); ok && len(p.steps) < 2000; {
				if !p.sleep(step) {
					return
				}
				_, ok = p.take("k", 1)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// leap drains a key after very long pauses, in which counters of time overflow. Each time the key must have exactly the
// tokens of a full key.
func (s *suite) leap(t *testing.T, l Limit) {
	const year = 365 * 24 * time.Hour
	s.program(t, l, early|late, func(p *program) {
		for _, pause := range []time.Duration{0, 1<<31 + 1, 1<<32 + 1, 10 * time.Second, (1<<31 + 1) * time.Microsecond,
			(1<<32 + 1) * time.Microsecond, 10 * time.Hour, (1<<31 + 1) * time.Millisecond, (1<<32 + 1) * time.Millisecond, year,
			10 * year, (1<<31 + 1) * time.Second} {
			if pause <= p.timeLeft() && p.sleep(pause) && !p.drain("k") {
				return
			}
		}
	})
}

// goBack sends requests at times that go back and leap ahead. The requests must not get more tokens than the latest of
// these times allows.
func (s *suite) goBack(t *testing.T, l Limit) {
	const year = 365 * 24 * time.Hour
	s.bubble(t, func(t *testing.T) {
		limiter, ok := s.open(t, l).(TimedLimiter)
		if !ok || l.Capacity(s.Promise) > 1000 {
			return
		}
		model, begin := s.checker(l), time.Unix(0, int64(s.now()))
		drainAt := func(ago time.Duration) {
			defer func() {
				if problem := recover(); problem != nil {
					t.Errorf("TakeAt with a time %v from the clock panicked: %v", -ago, problem)
				}
			}()
			at := begin.Add(-ago)
			for range l.Capacity(s.Promise) + 1 {
				d := limiter.TakeAt("k", 1, at)
				v := model.Add(Event{At: time.Duration(at.UnixNano()), N: 1, Allowed: d.Allowed})
				if v.Early > model.EarlyBy {
					t.Fatalf("%v of %v: a caller whose time was %v behind the latest got %d tokens more than there were then",
						s.Promise, l, ago, v.Excess)
				}
				if !d.Allowed {
					return
				}
			}
		}
		for _, ago := range []time.Duration{0, 1, 1000, time.Second, l.Per, time.Hour, 24 * time.Hour, 29 * year, 31 * year, 290 * year,
			0, -1, -l.Per, 1, 0, -time.Hour, 0, -200 * year, 0, -time.Hour, -260 * year, 290 * year, 0} {
			if drainAt(ago); t.Failed() {
				return
			}
		}
	})
}
