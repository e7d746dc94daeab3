package engine

import "time"

// all makes a call of TakeAll and combines its answers into one decision.
func all(requests ...Request) (Decision, error) {
	return together(requests, make([]Answer, len(requests)))
}

func together(requests []Request, answers []Answer) (d Decision, err error) {
	allowed, err := TakeAll(requests, answers)
	if err != nil {
		return Decision{}, err
	}
	for i, a := range answers[:len(requests)] {
		tighter := a.Decision.Remaining < d.Remaining || a.Decision.Remaining == d.Remaining && a.Decision.ResetAfter > d.ResetAfter
		if i == 0 || allowed && tighter || !allowed && a.Decision.RetryAfter > d.RetryAfter {
			d = a.Decision
		}
	}
	d.Allowed = allowed
	return d, nil
}

// holdAll is like the function all, for requests that hold estimates. It writes the receipts to holds.
func holdAll(requests []Request, holds []Receipt) (Decision, error) {
	estimates, answers := make([]Request, len(requests)), make([]Answer, len(holds))
	for i, r := range requests {
		r.Hold = true
		estimates[i] = r
	}
	d, err := together(estimates, answers)
	if err == nil {
		for i := range requests {
			holds[i] = answers[i].Receipt
		}
	}
	return d, err
}

func settleAll(holds []Receipt, actual ...uint64) (lost uint64) {
	for i := range holds {
		lost += holds[i].Settle(actual[i])
	}
	return lost
}

type reserved struct {
	Receipt
	delay time.Duration
}

func (l *Limiter) ahead(k Key, n uint64, maxWait time.Duration) (*reserved, error) {
	r, delay, err := l.Reserve(k, n, maxWait)
	if err != nil {
		return nil, err
	}
	return &reserved{r, delay}, nil
}
