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
	quota     Quota
	carrier   *lease.Lease // its renewal carries the request
	receipt   receipt
	inHand    uint64 // taken from the tokens in hand, for a request that can use fewer than N
	isDecided bool   // the limiter has decided, or the tokens were given back
	hasTokens bool
}

func (p *part) take(ctx context.Context) error {
	if p.Least == 0 {
		return p.noteDecision(p.quota.take(ctx, p.Key, p.N, &p.receipt))
	}
	n, d, err := p.quota.takeUpTo(ctx, p.Key, p.Least, p.N, &p.receipt)
	if err == nil && d.Allowed {
		p.N = n
	}
	return p.noteDecision(d, err)
}

// setHeld sets the Held of an admitted request. If the request is not counted anywhere, Held is a hold without tokens:
// any other hold would give back tokens of other requests.
func (p *part) setHeld() {
	_, isConstant, _ := p.quota.constantDecision()
	switch l := p.quota.limiter; {
	case !p.isDecided || !p.Decision.Allowed || isConstant:
	case p.receipt.origin == fromNowhere:
		p.Held = new(Hold)
	case l.flight != nil:
		if e := l.newEntry(p.Key, p.N, p.Decision, p.receipt); e != nil {
			p.Held = e
		}
	case p.Hold:
		if h := p.quota.newHold(p.Key, p.N, p.Decision, p.receipt); h != nil {
			p.Held = h
		}
	}
}

// takeInHand takes tokens in hand for a request that can use fewer tokens than it asks for.
func (p *part) takeInHand() {
	l := p.quota.limiter
	p.inHand = l.takeInHand(p.Key, p.N)
	if keyLease, ok := l.leases.Load(p.Key); ok && p.inHand == p.N && p.N >= p.Least {
		p.Decision, p.isDecided, p.hasTokens, p.inHand = l.decision(keyLease, true), true, true, 0
		p.receipt.setOrigin(fromLease)
	}
}

func (p *part) need() uint64 { return cmp.Or(p.Least, p.N) }

// decideLocally decides the part if the node can without a lease. A leased limiter ignores a remembered refusal,
// because its lease may have the tokens in hand.
func (p *part) decideLocally() {
	l := p.quota.limiter
	d, ok, _ := p.quota.constantDecision()
	if !ok {
		d, ok = l.trivialDecision(&p.quota, p.need())
	}
	if !ok && l.terms == nil {
		d, ok = l.refusals.lookup(p.Key, p.quota.numbers, p.need(), l.now())
	}
	p.Decision, p.isDecided = d, ok
	if ok && d.Allowed { // the request asks for no tokens
		p.receipt.setOrigin(fromStore)
	}
}

func (p *part) ask() script.Ask {
	if p.Least > 0 {
		return p.quota.askUpTo(p.Least, p.N, p.inHand)
	}
	return script.Ask{Need: p.N, Want: p.N, Quota: p.quota.numbers}
}

// noteAnswer notes the store's answer. If isAdmitted is true, the group was admitted, and the part keeps its tokens in
// hand.
func (p *part) noteAnswer(a script.Answer, isAdmitted bool, sent int64) {
	p.Decision, p.isDecided, p.hasTokens = p.quota.decision(a, a.Fits()), true, isAdmitted
	p.receipt = receipt{fromStore, a.Window}
	if p.inHand == 0 { // otherwise the question asked for fewer tokens than the request
		p.quota.limiter.refusals.remember(p.Key, p.quota.numbers, p.need(), sent, p.Decision)
	} else if isAdmitted {
		p.receipt.origin = fromLease
	}
	if isAdmitted && p.Least > 0 {
		p.N, p.inHand = p.inHand+a.Granted, 0
	}
}

func (p *part) putBack() {
	p.quota.putBack(p.Key, p.inHand)
	p.inHand = 0
}

func (p *part) fallback(cause error) error {
	if p.Least > 0 && p.inHand >= p.Least {
		p.receipt.setOrigin(fromLease)
		p.N, p.inHand = p.inHand, 0
		return p.noteDecision(engine.Decision{Allowed: true, Limit: p.quota.policy.Limit()}, nil)
	} else if p.Least > 0 {
		n, d, err := p.quota.fallbackUpTo(p.Key, p.Least, p.N, cause, &p.receipt)
		if err == nil && d.Allowed {
			p.N = n
		}
		return p.noteDecision(d, err)
	}
	return p.noteDecision(p.quota.limiter.fallback(&p.quota, p.Key, p.N, cause, &p.receipt))
}

// noteDecision notes the decision of a limiter, or the store's error. It returns any other error.
func (p *part) noteDecision(d engine.Decision, err error) error {
	if err != nil && !errors.Is(err, ErrStore) {
		return err
	}
	if p.Err = err; err == nil {
		p.Decision, p.isDecided, p.hasTokens = d, true, d.Allowed && p.receipt.origin != fromNowhere
	}
	return nil
}
