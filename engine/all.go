package engine

import "fmt"

// maxRequests bounds how many limits [TakeAll] asks.
const maxRequests = 64

// A Request is for one of the limits that [TakeAll] asks.
type Request struct {
	Limiter *Limiter
	Key     Key
	N       uint64 // tokens
	Hold    bool   // N is an estimate: above the limit it counts as the limit ([Limiter.Hold])
}

// An Answer is what one of the limits that [TakeAll] asks says of its request.
type Answer struct {
	Decision Decision
	Receipt  Receipt // what was taken; of nothing if the requests were refused
}

// TakeAll takes from several limits at once, all or nothing: per second and per hour, per user
// and for all users together. It is allowed if each of them allows it. Otherwise nothing is taken, and each answer is
// what its limit alone would say, so those that are not Allowed tell which limits refuse: nothing passes sooner than
// after the longest RetryAfter. The answers are in the order of the requests, and answers must have room for them.
// TakeAll does not allocate. Package limits does the same for requests of a server, in memory and in stores.
//
// TakeAll takes from one limit after the other. When one refuses, what was taken is given back: each limit is left as
// if its take had never been ([Receipt.Refund]). No call waits for another, so no order of limits can deadlock. The
// price is in three cases:
//
//   - Another request may be refused for tokens that are given back a moment later.
//   - If another request takes in between, a bucket that was nearly full may lose a part of a token.
//   - Tokens for which another key was evicted are not given back.
//
// No requests or more than 64, a nil limiter, and the same key of the same limiter twice are
// errors, and nothing is taken.
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
		r.Limiter.takeReceipt(&a.Decision, &a.Receipt, r.Key, r.N, r.Hold)
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
		answers[j].Receipt.Release()
	}
	for j, r := range requests {
		if j == i {
			continue
		}
		n := r.N
		if r.Hold {
			n = capped(r.Limiter.table.Plan(), r.Key, n)
		}
		answers[j] = Answer{Decision: r.Limiter.Peek(r.Key, n)}
	}
}

// check checks the requests of [TakeAll].
func check(requests []Request) error {
	if len(requests) < 1 || len(requests) > maxRequests {
		return fmt.Errorf("engine: TakeAll: %d requests: want 1 to %d", len(requests), maxRequests)
	}
	for i, r := range requests {
		if r.Limiter == nil || r.Limiter.table == nil {
			return fmt.Errorf("engine: TakeAll: request %d of %d has no limiter that New made", i+1, len(requests))
		}
		for j, other := range requests[:i] {
			if r.Limiter == other.Limiter && r.Key.hash == other.Key.hash {
				return fmt.Errorf("engine: TakeAll: requests %d and %d of %d are for the same key of the same limiter", j+1,
					i+1, len(requests))
			}
		}
	}
	return nil
}
