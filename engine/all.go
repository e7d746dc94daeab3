package engine

import "fmt"

// maxRequests is the largest number of requests that [TakeAll] accepts.
const maxRequests = 64

// A Request is one of the requests of [TakeAll]. It asks one limiter for tokens.
type Request struct {
	Limiter *Limiter
	Key     Key
	N       uint64 // tokens
	Hold    bool   // N is an estimate: an N above the limit counts as the limit ([Limiter.Hold])
}

// An Answer is a limiter's answer to one [Request] of [TakeAll].
type Answer struct {
	Decision Decision
	Receipt  Receipt // for the tokens taken; the zero Receipt if the requests were refused
}

// TakeAll takes from several limits at once, all or nothing. These may be limits per second and per hour, for example,
// or limits per user and for all users together. The requests are allowed if every limiter allows its request.
// Otherwise nothing is taken, and each limiter gives the answer that it would give to its request alone. The answers
// that are not Allowed show which limiters refuse. The same requests cannot be admitted before the longest RetryAfter
// is over. TakeAll writes its answers to the slice answers, in the order of the requests. This slice must be long
// enough for them. TakeAll does not allocate. Package limits does the same for requests of a server, in memory and in
// stores.
//
// TakeAll takes from one limiter after the other, in the order of the requests. If a limiter refuses, TakeAll gives the
// tokens back to all limiters from which it has taken. The refund makes each record what it would be without that take
// ([Receipt.Refund]). No call waits for another, so no order of limiters can deadlock.
//
// TakeAll is not atomic. Each of its takes is atomic, and so is each of its refunds. Every other call sees a take or a
// refund as soon as it is made. So other calls count tokens that a call of TakeAll has taken, even if a later limiter
// then refuses that call. This has the following consequences:
//
//   - No limiter ever admits more than its limit. Other calls can take the tokens of a refused call only after these
//     tokens were given back.
//   - A call may be refused because of tokens that another call gives back a moment later. The answer of the refused
//     call counts those tokens as taken: Remaining is lower, and RetryAfter longer, than without the other call. When
//     all calls have returned, refused calls have taken nothing.
//   - Calls that take the last tokens of the same limiters in different orders may all be refused, because each is
//     refused for tokens that another call gives back later. This does not happen if all calls name the limiters in the
//     same order: the number of admitted calls is then the same as if the calls came one after the other. So use the
//     same order in all calls, and put the limiter first that refuses most often.
//   - After a refused call has given its tokens back, it computes the answers of the limiters one after the other. So
//     the answers describe slightly different moments.
//
// In three cases a refused call changes something. A bucket that was nearly full may lose part of a token, if another
// request takes before the tokens are given back. If a take evicted another key, that key does not get its record back.
// The tokens stay taken if a nearby key in the table is evicted or reset before they are given back ([Receipt.Refund]).
//
// TakeAll returns an error and takes nothing if there are no requests, more than 64 requests, a nil limiter, or two
// requests for the same key of the same limiter.
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

// undo gives back the tokens that were taken before the request with the index i was refused. To get the answers to all
// other requests, it peeks at their limiters.
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
