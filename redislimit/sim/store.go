package sim

import (
	"time"

	"github.com/weir-go/weir/redislimit/internal/script"
)

// A bucket is what the store, or the ideal limiter, knows of a key.
type bucket struct {
	owed int64 // parts of a token, until the bucket is full again
	last int64 // µs, when that was
}

// A refill is how buckets fill up. All of it is whole numbers: a token has so many parts that
// every microsecond gives a whole number of them back.
type refill struct {
	token int64 // parts
	back  int64 // parts, each µs
	full  int64 // parts of a full bucket
}

// slowing is the part of the rate that leases do without: one in so many.
const slowing = 1024

func newRefill(s *Scenario) *refill {
	micros := int64(s.Rate.Period() / time.Microsecond)
	return &refill{token: micros, back: int64(s.Rate.Tokens()), full: int64(s.Burst) * micros}
}

// slowed returns the refill that leases run on, the same but a little slower.
func (r *refill) slowed() *refill {
	return &refill{token: r.token * slowing, back: r.back * (slowing - 1), full: r.full * slowing}
}

// take takes a token at a time in µs, if there is one.
func (r *refill) take(b *bucket, now int64) bool {
	return r.ask(b, now, script.Ask{Need: 1, Want: 1}).Granted == 1
}

// ask decides as the script for the token bucket does, at a time in µs that never goes back.
func (r *refill) ask(b *bucket, now int64, a script.Ask) script.Answer {
	if elapsed := now - b.last; elapsed > b.owed/r.back {
		b.owed = 0
	} else {
		b.owed -= elapsed * r.back
	}
	b.last = now
	b.owed = max(b.owed-int64(a.Returned)*r.token, 0)
	if a.Debt > 0 { // at most one more bucket is remembered
		b.owed = min(b.owed+int64(a.Debt)*r.token, max(b.owed, 2*r.full))
	}
	answer := script.Answer{}
	room := uint64(max(r.full-b.owed, 0) / r.token)
	if room >= a.Need {
		answer.Granted = min(a.Want, max(a.Need, room/4), room)
		b.owed += int64(answer.Granted) * r.token
	} else {
		answer.RetryAfter = r.until(b.owed + int64(a.Need)*r.token - r.full)
	}
	answer.Remaining = room - answer.Granted
	answer.ResetAfter = r.until(b.owed)
	return answer
}

// until returns how long so many parts take, to the microsecond above.
func (r *refill) until(parts int64) time.Duration {
	return time.Duration((parts+r.back-1)/r.back) * time.Microsecond
}
