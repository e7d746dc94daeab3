package engine

import "fmt"

// A Request is one of the limits that [All] asks for.
type Request struct {
	Limiter *Limiter
	Key     Key
	N       uint64 // tokens
}

// All takes from several limits at once, all or nothing: per second and per hour, per user
// and for all users together. It is allowed if each of them allows it, and then the decision is the
// tightest: that with the least Remaining. Otherwise nothing is taken, and the decision is
// that with the longest RetryAfter: nothing passes sooner.
//
// The limits are taken from one after the other, and what was taken is given back when one
// refuses. No call waits for another, so there is no order that could deadlock. The price: another request may be
// refused for tokens that are given back a moment later.
//
// No requests or more than 64, a nil limiter, and the same key of the same limiter twice are
// errors, and nothing is taken.
func All(requests ...Request) (Decision, error) {
	if err := check(requests); err != nil {
		return Decision{}, err
	}
	var tightest Decision
	taken := uint64(0) // a bit for each; not those that were admitted without a record
	for i, r := range requests {
		var d Decision
		recorded := r.Limiter.takeKey(&d, r.Key, r.N)
		if !d.Allowed {
			for j, r := range requests[:i] {
				if taken>>j&1 == 1 {
					r.Limiter.RefundKey(r.Key, r.N)
				}
			}
			return longestWait(requests, i, d), nil
		}
		if recorded {
			taken |= 1 << i
		}
		if i == 0 || d.Remaining < tightest.Remaining || d.Remaining == tightest.Remaining && d.ResetAfter > tightest.ResetAfter {
			tightest = d
		}
	}
	return tightest, nil
}

// longestWait returns the decision with the longest wait: that of request i, or that of
// another that would be refused as well.
func longestWait(requests []Request, i int, d Decision) Decision {
	for j, r := range requests {
		if j == i {
			continue
		}
		if other := r.Limiter.PeekKey(r.Key, r.N); other.RetryAfter > d.RetryAfter {
			d = other
		}
	}
	return d
}

// check checks the requests of [All].
func check(requests []Request) error {
	if len(requests) < 1 || len(requests) > 64 {
		return fmt.Errorf("engine: All: %d requests: want 1 to 64", len(requests))
	}
	for i, r := range requests {
		if r.Limiter == nil {
			return fmt.Errorf("engine: All: request %d of %d has no limiter", i+1, len(requests))
		}
		for j, other := range requests[:i] {
			if r.Limiter == other.Limiter && r.Key.hash == other.Key.hash {
				return fmt.Errorf("engine: All: requests %d and %d of %d are for the same key of the same limiter", j+1, i+1, len(requests))
			}
		}
	}
	return nil
}
