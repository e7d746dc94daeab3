package redislimit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// Source returns the limiter, with its quotas and [Tiers], as a [limits.Source] for package limits, httplimit or
// rpclimit.
//
// All limits of a request that share a [Client] take tokens together, all or none. The node first uses remembered
// refusals and tokens in hand, and then asks the store in one call. In a cluster, keys in different slots need separate
// calls, one after the other.
func (l *Limiter) Source() limits.Source { return source{l.ownQuota} }

type source struct{ quota Quota }

func (s source) Policy() engine.Policy { return s.quota.policy }

func (s source) Quota(p engine.Policy) (limits.Source, error) {
	q, err := s.quota.limiter.Quota(p)
	return source{q}, err
}

// Holds implements [limits.Holder].
func (s source) Holds() bool { return true }

// Tier implements [limits.Tiered].
func (s source) Tier(tier int) limits.Source {
	switch l := s.quota.limiter; {
	case tier == 0:
		return l.Source()
	case tier > 0 && tier <= len(l.sources):
		return l.sources[tier-1]
	}
	return nil
}

func (s source) Store() limits.Store { return store{s.quota.limiter.client} }

// A store decides about all limits that share its client.
type store struct{ client *Client }

func (s store) parts(asks []limits.Ask) ([]part, error) {
	parts := make([]part, len(asks))
	for i := range asks {
		src, ok := asks[i].Source.(source)
		if !ok || src.quota.limiter.client != s.client {
			return nil, fmt.Errorf("redislimit: a Source of type %T is not one of this store: want that of Limiter.Source", asks[i].Source)
		}
		parts[i] = part{Ask: &asks[i], quota: src.quota}
		if asks[i].Hold {
			asks[i].N = min(asks[i].N, src.quota.policy.Limit())
		}
		if asks[i].Least > 0 {
			asks[i].Least = src.quota.clampMin(asks[i].Least)
		}
	}
	return parts, nil
}

// TakeAll implements [limits.Store].
func (s store) TakeAll(ctx context.Context, asks []limits.Ask) error {
	parts, err := s.parts(asks)
	if err != nil {
		return err
	}
	addDeciding(parts, 1)
	defer addDeciding(parts, -1)
	if len(parts) == 1 {
		p := &parts[0]
		err := p.take(ctx)
		p.setHeld()
		return err
	}
	err = s.takeAll(ctx, parts)
	for i := range parts {
		p := &parts[i]
		p.putBack()
		if p.carrier != nil { // the store was not asked, so the renewal that the lease began must end
			p.quota.limiter.renew(p.carrier, p.Key, p.N)
		}
	}
	if err != nil || !noneRefused(parts) {
		return errors.Join(err, s.giveBack(context.WithoutCancel(ctx), parts))
	}
	for i := range parts {
		parts[i].setHeld()
	}
	return nil
}

func addDeciding(parts []part, n int64) {
	for i := range parts {
		parts[i].quota.limiter.addDeciding(n)
	}
}

func noneRefused(parts []part) bool {
	for _, p := range parts {
		if p.isDecided && !p.Decision.Allowed {
			return false
		}
	}
	return true
}

func (s store) takeAll(ctx context.Context, parts []part) error {
	for i := range parts {
		parts[i].decideLocally()
	}
	for i := range parts {
		p := &parts[i]
		switch {
		case p.isDecided || p.quota.limiter.terms == nil || !noneRefused(parts):
		case p.Least > 0:
			p.takeInHand()
		default:
			p.Decision, p.isDecided, p.carrier = p.quota.limiter.takeLocal(p.Key, p.N)
			p.hasTokens = p.isDecided && p.Decision.Allowed
			p.receipt.setOrigin(fromLease)
		}
	}
	for noneRefused(parts) {
		group := s.next(parts)
		if len(group) == 0 {
			return nil
		}
		if err := s.takeGroup(ctx, group); err != nil {
			return err
		}
	}
	return nil
}

// next returns the parts for the next call. Their keys are in the same part of the store, and no key occurs twice.
func (s store) next(parts []part) (group []*part) {
	n, groupPart := len(s.client.link.Load().breakers), 0
	for i := range parts {
		p := &parts[i]
		if p.isDecided || p.Err != nil {
			continue
		}
		storePart := p.quota.limiter.partition(p.Key) % n
		if len(group) == 0 {
			groupPart = storePart
		}
		if storePart == groupPart && len(group) < script.MaxKeys && !p.isIn(group) {
			group = append(group, p)
		}
	}
	return group
}

func (p *part) isIn(group []*part) bool {
	for _, other := range group {
		if other.quota.limiter == p.quota.limiter && other.Key == p.Key {
			return true
		}
	}
	return false
}

func (s store) takeGroup(ctx context.Context, group []*part) error {
	if len(group) == 1 || s.client.eviction.isLost() { // only some limiters ask a store that drops keys
		return takeEach(ctx, group)
	}
	sent := now()
	answers, err := s.askGroup(ctx, group, func(p *part) script.Ask {
		if p.carrier != nil {
			p.quota.limiter.renew(p.carrier, p.Key, p.N)
			p.carrier = nil
		}
		return p.ask()
	})
	if errors.Is(err, errMoves) {
		return takeEach(ctx, group)
	}
	allFit := true
	for _, a := range answers {
		allFit = allFit && (a.Foreign || a.Fits())
	}
	for i, p := range group {
		l := p.quota.limiter
		switch {
		case err != nil:
			if err := p.fallback(err); err != nil {
				return err
			}
		case answers[i].Foreign:
			if err := p.fallback(s.client.foreign(l.namer.name(l.partition(p.Key), p.Key))); err != nil {
				return err
			}
		default:
			l.chargeDebt(debtID{p.Key, p.quota.numbers})
			p.noteAnswer(answers[i], allFit, sent)
		}
	}
	return nil
}

func takeEach(ctx context.Context, group []*part) error {
	for _, p := range group {
		if p.Least > 0 {
			p.putBack()
			if err := p.take(ctx); err != nil || p.isDecided && !p.Decision.Allowed {
				return err
			}
			continue
		}
		d, err := p.quota.limiter.takeStrict(ctx, &p.quota, p.Key, p.N, p.carrier, &p.receipt)
		p.carrier = nil
		if err := p.noteDecision(d, err); err != nil || p.isDecided && !d.Allowed {
			return err
		}
	}
	return nil
}

// askGroup asks the store about a group, whose keys must be in the same part of the store.
func (s store) askGroup(ctx context.Context, group []*part, ask func(*part) script.Ask) ([]script.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	link := s.client.link.Load()
	items := make([]script.Item, len(group))
	for i, p := range group {
		_, items[i] = p.quota.limiter.route(p.Key, ask(p))
	}
	if len(link.groupQueues) == 0 {
		return nil, errLost
	}
	queue := &link.groupQueues[group[0].quota.limiter.partition(group[0].Key)%len(link.groupQueues)]
	replies := make(chan reply, 1)
	var givenUp atomic.Bool
	err := queue.put(question{items: items, givenUp: &givenUp, onAnswer: func(a []script.Answer, err error) {
		replies <- reply{answers: a, err: err}
	}})
	if err != nil {
		return nil, err
	}
	defer givenUp.Store(true)
	r := wait(ctx, replies)
	return r.answers, r.err
}

// RefundAll implements [limits.Store].
func (s store) RefundAll(ctx context.Context, asks []limits.Ask) error {
	parts, err := s.parts(asks)
	switch {
	case err != nil:
		return err
	case len(parts) == 1 && asks[0].Held == nil:
		return parts[0].quota.Refund(ctx, asks[0].Key, asks[0].N)
	}
	for i := range parts {
		p := &parts[i]
		switch held := p.Held.(type) {
		case *Hold:
			p.hasTokens, _ = held.claim.Settle()
			p.N = held.taken
			p.receipt = receipt{held.origin, held.window}
		case *Entry:
			_, p.hasTokens = held.settle() // otherwise the renewal in progress gives them back
			p.receipt = receipt{fromStore, held.id}
		default:
			p.hasTokens = true
		}
	}
	return s.giveBack(ctx, parts)
}

// giveBack gives back the tokens that the parts have taken. They go to the node's share or lease, or to the store, with
// one call for each part of the store. If one call fails, the other calls are still made.
func (s store) giveBack(ctx context.Context, parts []part) (err error) {
	for i := range parts {
		p := &parts[i]
		_, isConstant, _ := p.quota.constantDecision()
		l := p.quota.limiter
		switch {
		case !p.hasTokens || isConstant:
			p.isDecided = true
		case l.flight != nil:
			p.isDecided = true
			err = errors.Join(err, l.refundPlaces(ctx, p.Key, p.N, p.receipt))
		case p.receipt.origin == fromShare: // even before the store counts as lost
			p.isDecided = true
			l.share.refund(p.Key, &p.quota, p.N)
		default:
			p.isDecided = l.refundLocally(&p.quota, p.Key, p.N)
		}
	}
	for group := s.next(parts); len(group) > 0; group = s.next(parts) {
		var groupErr error
		if len(group) > 1 {
			_, groupErr = s.askGroup(ctx, group, func(p *part) script.Ask { return p.quota.refundAsk(p.N) })
		}
		for _, p := range group {
			if p.isDecided = true; len(group) == 1 || errors.Is(groupErr, errMoves) {
				_, askErr := p.quota.limiter.ask(ctx, p.Key, p.quota.refundAsk(p.N))
				err = errors.Join(err, askErr)
			}
			p.quota.limiter.refusals.drop(p.Key)
		}
		if !errors.Is(groupErr, errMoves) {
			err = errors.Join(err, groupErr)
		}
	}
	return err
}
