package engine

import "fmt"

const maxRequests = 64

// A Request asks one limiter for tokens, as part of a call of [TakeAll].
type Request struct {
	Limiter *Limiter
	Key     Key
	N       uint64 // tokens
	Hold    bool   // N is an estimate: above the limit it counts as the limit ([Limiter.Hold])
}

// An Answer is a limiter's answer to one [Request] of [TakeAll].
type Answer struct {
	Decision Decision
	Receipt  Receipt // for the tokens taken; the zero Receipt if the requests were refused
}

// TakeAll takes from several limits at once, all or nothing: for example limits per second and per hour, or per user
// and for all users. If one limiter refuses, nothing is taken, and each limiter answers as it would to its request
// alone. The same requests cannot be admitted before the longest RetryAfter is over. The answer to requests[i] is
// answers[i], so answers must be at least as long as requests. TakeAll does not allocate. Package limits does the same
// for the requests of a server, with limits in memory and in stores.
//
// Each take of a TakeAll is atomic, but the TakeAll itself is not. It takes in the order of the requests. If a limiter
// refuses, it gives the earlier takes back by [Receipt.Refund]. No call waits for another call. Concurrent calls may
// see takes that are given back:
//
//   - No limiter ever admits more than its limit.
//   - A call may be refused because of tokens that a concurrent TakeAll gives back a moment later.
//   - Concurrent calls with different orders of the same limiters may all be refused for the last tokens. If all calls
//     use one order, as many are admitted as if the calls came one after the other. Put the limiter that refuses most
//     often first.
//   - The answers of a refused call describe slightly different moments.
//
// A refused call changes something in three cases:
//
//   - A nearly full bucket may lose part of a token, if another request takes before the refund.
//   - If a take evicted another key, that key does not get its record back.
//   - Tokens stay taken if a key nearby in the table is evicted or reset before the refund.
//
// TakeAll returns an error and takes nothing if there are no requests, more than 64 requests, a nil limiter, or two
// requests for the same key of the same limiter.
func TakeAll(requests []Request, answers []Answer) (allowed bool, err error) {
	if err := checkRequests(requests); err != nil {
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

// undo gives back the takes before request i, and peeks for the answers of all requests except request i.
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
			n = capEstimate(r.Limiter.table.Plan(), r.Key, n)
		}
		answers[j] = Answer{Decision: r.Limiter.Peek(r.Key, n)}
	}
}

func checkRequests(requests []Request) error {
	if len(requests) < 1 || len(requests) > maxRequests {
		return fmt.Errorf("engine: TakeAll: %d requests: want 1 to %d", len(requests), maxRequests)
	}
	for i, r := range requests {
		if r.Limiter == nil || r.Limiter.table == nil {
			return fmt.Errorf("engine: TakeAll: request %d of %d has no limiter that New made", i+1, len(requests))
		}
		for j, earlier := range requests[:i] {
			if r.Limiter == earlier.Limiter && r.Key.hash == earlier.Key.hash {
				return fmt.Errorf("engine: TakeAll: requests %d and %d of %d are for the same key of the same limiter", j+1,
					i+1, len(requests))
			}
		}
	}
	return nil
}
