package redislimit

import (
	"cmp"
	"context"
	"errors"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// A part is the part of a request that one limiter decides.
type part struct {
	*limits.Ask
	quota   Quota
	carrier *lease.Lease // its renewal carries the request
	receipt receipt
	inHand  uint64 // taken from the tokens in hand, for a request that can use fewer than N
	decided bool   // the limiter has decided, or the tokens were given back
	taken   bool
}

func (p *part) take(ctx context.Context) error {
	if p.Least == 0 {
		return p.decide(p.quota.take(ctx, p.Key, p.N, &p.receipt))
	}
	n, d, err := p.quota.takeUpTo(ctx, p.Key, p.Least, p.N, &p.receipt)
	if err == nil && d.Allowed {
		p.N = n
	}
	return p.decide(d, err)
}

// keep sets the Held of an admitted request. If the request is not counted anywhere, Held is a hold without tokens: any
// other hold would give back tokens of other requests.
func (p *part) keep() {
	_, fixed, _ := p.quota.fixed()
	switch l := p.quota.limiter; {
	case !p.decided || !p.Decision.Allowed || fixed:
	case p.receipt.from == fromNowhere:
		p.Held = new(Hold)
	case l.flight != nil:
		if e := l.entered(p.Key, p.N, p.Decision, p.receipt); e != nil {
			p.Held = e
		}
	case p.Hold:
		if h := p.quota.held(p.Key, p.N, p.Decision, p.receipt); h != nil {
			p.Held = h
		}
	}
}

// takeInHand takes tokens in hand for a request that can use fewer tokens than it asks for.
func (p *part) takeInHand() {
	l := p.quota.limiter
	p.inHand = l.takeInHand(p.Key, p.N)
	if held, ok := l.leases.Load(p.Key); ok && p.inHand == p.N && p.N >= p.Least {
		p.Decision, p.decided, p.taken, p.inHand = l.decision(held, true), true, true, 0
		p.receipt.are(fromLease)
	}
}

func (p *part) needs() uint64 { return cmp.Or(p.Least, p.N) }

// remember decides the part if the node can. A leased limiter ignores a remembered refusal, because its lease may have
// the tokens in hand.
func (p *part) remember() {
	l := p.quota.limiter
	d, known, _ := p.quota.fixed()
	if !known {
		d, known = l.fixed(&p.quota, p.needs())
	}
	if !known && l.terms == nil {
		d, known = l.known.of(p.Key, p.quota.numbers, p.needs(), l.now())
	}
	p.Decision, p.decided = d, known
	if known && d.Allowed { // the request asks for no tokens
		p.receipt.are(fromStore)
	}
}

func (p *part) ask() script.Ask {
	if p.Least > 0 {
		return p.quota.askUpTo(p.Least, p.N, p.inHand)
	}
	return script.Ask{Need: p.N, Want: p.N, Quota: p.quota.numbers}
}

// answered notes the store's answer. If all is true, the group was admitted, and the part keeps its tokens in hand.
func (p *part) answered(a script.Answer, all bool, sent int64) {
	p.Decision, p.decided, p.taken = p.quota.answered(a, a.Fits()), true, all
	p.receipt = receipt{fromStore, a.Window}
	if p.inHand == 0 { // otherwise the question asked for fewer tokens than the request
		p.quota.limiter.known.remember(p.Key, p.quota.numbers, p.needs(), sent, p.Decision)
	} else if all {
		p.receipt.from = fromLease
	}
	if all && p.Least > 0 {
		p.N, p.inHand = p.inHand+a.Granted, 0
	}
}

func (p *part) putBack() {
	p.quota.putBack(p.Key, p.inHand)
	p.inHand = 0
}

func (p *part) fallback(cause error) error {
	if p.Least > 0 && p.inHand >= p.Least {
		p.receipt.are(fromLease)
		p.N, p.inHand = p.inHand, 0
		return p.decide(engine.Decision{Allowed: true, Limit: p.quota.policy.Limit()}, nil)
	} else if p.Least > 0 {
		n, d, err := p.quota.fallbackUpTo(p.Key, p.Least, p.N, cause, &p.receipt)
		if err == nil && d.Allowed {
			p.N = n
		}
		return p.decide(d, err)
	}
	return p.decide(p.quota.limiter.fallback(&p.quota, p.Key, p.N, cause, &p.receipt))
}

// decide notes the decision of a limiter, or the store's error. It returns any other error.
func (p *part) decide(d engine.Decision, err error) error {
	if err != nil && !errors.Is(err, ErrStore) {
		return err
	}
	if p.Err = err; err == nil {
		p.Decision, p.decided, p.taken = d, true, d.Allowed && p.receipt.from != fromNowhere
	}
	return nil
}
