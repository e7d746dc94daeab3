package engine

import "fmt"

// maxRequests bounds how many limits [All] and [TakeAll] ask.
const maxRequests = 64

// A Request is one of the limits that [All] asks.
type Request struct {
	Limiter *Limiter
	Key     Key
	N       uint64 // tokens
}

// An Answer is what one of the limits that [TakeAll] asks says of its request.
type Answer struct {
	Decision Decision
	Receipt  Receipt // what was taken; of nothing if the requests were refused
}

// All takes from several limits at once, all or nothing: per second and per hour, per user
// and for all users together. It is allowed if each of them allows it, and then the decision is the
// tightest: that with the least Remaining. Otherwise nothing is taken, and the decision is
// that with the longest RetryAfter: nothing passes sooner. [TakeAll] returns every limit's decision. All does not
// allocate for up to eight limits.
//
// The limits are taken from one after the other, and what was taken is given back when one refuses: each limit is left
// as if its take had never been ([Receipt.Refund]). No call waits for another, so there is no order that could
// deadlock. The price: another request may be refused for tokens that are given back a moment later, and where another
// has taken in between, a bucket that was nearly full may keep a part of a token. A request for which another key was
// evicted is not given back.
//
// No requests or more than 64, a nil limiter, and the same key of the same limiter twice are
// errors, and nothing is taken.
func All(requests ...Request) (Decision, error) {
	var few [8]Answer
	answers := few[:]
	if len(requests) > len(few) {
		answers = make([]Answer, min(len(requests), maxRequests))
	}
	allowed, err := TakeAll(requests, answers)
	if err != nil {
		return Decision{}, err
	}
	answers = answers[:len(requests)]
	d := answers[0].Decision
	for i := range answers[1:] {
		if other := answers[i+1].Decision; allowed && other.tighter(d) || !allowed && other.RetryAfter > d.RetryAfter {
			d = other
		}
	}
	d.Allowed = allowed
	return d, nil
}

// tighter reports whether less is left than by another decision.
func (d Decision) tighter(other Decision) bool {
	return d.Remaining < other.Remaining || d.Remaining == other.Remaining && d.ResetAfter > other.ResetAfter
}

// TakeAll is [All] with the answer of every limit, in the order of the requests: answers must have room for them. If
// one or more refuse nothing is taken, and each answer is what its limit alone would say, so those that are not Allowed
// tell which limits refuse. It does not allocate.
func TakeAll(requests []Request, answers []Answer) (allowed bool, err error) {
	if err := check(requests); err != nil {
		return false, err
	}
	if len(answers) < len(requests) {
		return false, fmt.Errorf("engine: TakeAll: %d requests and room for %d answers", len(requests), len(answers))
	}
	for i, r := range requests {
		a := &answers[i]
		a.Receipt = Receipt{}
		r.Limiter.takeReceipt(&a.Decision, &a.Receipt, r.Key, r.N, false)
		if !a.Decision.Allowed {
			undo(requests, answers, i)
			return false, nil
		}
	}
	return true, nil
}

// undo gives back what was taken before request i was refused, and asks all others what they say.
func undo(requests []Request, answers []Answer, i int) {
	for j := range i {
		answers[j].Receipt.Refund(requests[j].N)
	}
	for j, r := range requests {
		if j != i {
			answers[j] = Answer{Decision: r.Limiter.PeekKey(r.Key, r.N)}
		}
	}
}

// check checks the requests of [All].
func check(requests []Request) error {
	if len(requests) < 1 || len(requests) > maxRequests {
		return fmt.Errorf("engine: All: %d requests: want 1 to %d", len(requests), maxRequests)
	}
	for i, r := range requests {
		if r.Limiter == nil || r.Limiter.table == nil {
			return fmt.Errorf("engine: All: request %d of %d has no limiter that New made", i+1, len(requests))
		}
		for j, other := range requests[:i] {
			if r.Limiter == other.Limiter && r.Key.hash == other.Key.hash {
				return fmt.Errorf("engine: All: requests %d and %d of %d are for the same key of the same limiter", j+1,
					i+1, len(requests))
			}
		}
	}
	return nil
}
