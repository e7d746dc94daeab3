package envoy

import (
	"context"
	"fmt"
	"math"
	"slices"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

// A Bucket is the counter of a descriptor under a rule, for peeks and resets. It must not be used after a change of the
// rules.
type Bucket struct {
	service *Service
	check   check
	text    []byte // the text of the key; nil if only its hash is known
	limit   engine.Policy
}

// Bucket returns the counter of a descriptor under a rule. It returns an error if the rule does not apply to the
// descriptor or counts nothing.
func (s *Service) Bucket(rule *config.Rule, descriptor *commonv3.RateLimitDescriptor) (Bucket, error) {
	current := s.active.Load()
	if current == nil {
		return Bucket{}, errNoConfig
	}
	rules := current.config.Match(rule.Domain(), descriptor)
	if len(rules) == 0 {
		return Bucket{}, fmt.Errorf("no rule of domain %q matches these entries", rule.Domain())
	}
	if !slices.Contains(rules, rule) {
		return Bucket{}, fmt.Errorf("the rule for these entries is %s", rules[0].Stat)
	}
	b, err := s.bucket(current, rule)
	if err == nil {
		if p, ok := b.check.rule.valueLimit(descriptor); ok {
			b = b.WithLimit(p)
		}
		work := new(scratch)
		b.check.setKey(rule, rule.Domain(), descriptor, work)
		b.text = work.key
	}
	return b, err
}

// Limit returns the limit that the descriptor's last value has for itself. It is the zero Policy if the limit of the
// rule applies, or if the value's limit is not known.
func (b Bucket) Limit() engine.Policy { return b.limit }

// WithLimit returns the same counter under the limit p, which must come from Limit.
func (b Bucket) WithLimit(p engine.Policy) Bucket {
	if b.limit = p; p != (engine.Policy{}) {
		table := b.check.table
		b.check.useValueLimit(p)
		b.check.table = table // the key may have a record there, even if the limit p counts nothing
	}
	return b
}

// BucketOf returns the counter in memory with the key of a [Decision] of the rule.
func (s *Service) BucketOf(rule *config.Rule, key engine.Key) (Bucket, error) {
	current := s.active.Load()
	if current == nil || rule.Index >= len(current.rules) || current.rules[rule.Index].Rule != rule {
		return Bucket{}, fmt.Errorf("rule %s is no longer active", rule.Stat)
	}
	if s.tables.inStore {
		return Bucket{}, fmt.Errorf("the counters of rule %s are in a store: they have no such key", rule.Stat)
	}
	b, err := s.bucket(current, rule)
	b.check.counter.hash = key
	return b, err
}

func (s *Service) bucket(current *activeConfig, r *config.Rule) (Bucket, error) {
	rule := &current.rules[r.Index]
	if rule.table == nil {
		return Bucket{}, fmt.Errorf("rule %s counts nothing", r.Stat)
	}
	return Bucket{service: s, check: check{rule: rule, limit: r.Limit, table: rule.table, applies: true, hits: 1}}, nil
}

// Peek returns whether one hit would pass now, and how many hits are left. It counts nothing. Only a failing store
// causes an error.
func (b Bucket) Peek(ctx context.Context) (engine.Decision, error) {
	c := b.check
	if c.limit.Unlimited {
		return engine.Decision{Allowed: true, Limit: math.MaxUint64, Remaining: math.MaxUint64}, nil
	}
	if c.limit.Algorithm != engine.AlgorithmFixedWindow {
		return c.table.peek(ctx, c.counter, 1)
	}
	now := b.service.now()
	if err := c.peek(ctx, now); err != nil {
		return engine.Decision{}, err
	}
	d := engine.Decision{Limit: c.capacity(), Remaining: c.remaining, Allowed: c.remaining > 0}
	if c.after > 0 {
		d.ResetAfter = c.limit.UntilNext(now)
	}
	switch {
	case d.Limit == 0:
		d.RetryAfter = engine.Never
	case !d.Allowed:
		d.RetryAfter = c.limit.UntilNext(now)
	}
	return d, nil
}

// Key returns the key of the counter. It is zero if counters are in a store.
func (b Bucket) Key() engine.Key { return b.check.counter.hash }

// Reset clears the counter. It also resets limits that requests carry, if these limits have the same entries and the
// same length of window. Only a failing store causes an error.
func (b Bucket) Reset(ctx context.Context) error {
	err := b.check.table.reset(ctx, b.check.counter)
	if local, ok := b.check.table.(localTable); ok && b.text != nil {
		local.limiter.Formers().Forget(func(l *engine.Limiter) (engine.Key, bool) { return l.KeyBytes(b.text), true })
	}
	b.service.memo.forget(&b.check)
	return err
}

// StoreLimiter returns the limiter in the store for a rule. It is nil if counters are in memory or the rule counts
// nothing.
func (s *Service) StoreLimiter(r *config.Rule) *redislimit.Limiter {
	current := s.active.Load()
	if current == nil || r.Index >= len(current.rules) || current.rules[r.Index].Rule != r {
		return nil
	}
	if t, ok := current.rules[r.Index].table.(storeTable); ok && t.shares != nil {
		return t.shares
	} else if ok {
		return t.limiter
	}
	return nil
}
