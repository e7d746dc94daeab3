package admin

import (
	"context"

	"github.com/weir-go/weir/engine"
)

// A bucket is what a rule has of one key: here, or in the store.
type bucket struct {
	rule Rule
	key  engine.Key // of the rule's Limiter
	text string     // the same of its Stored
}

// hasKeys reports whether the keys of a rule can be looked at.
func (r *Rule) hasKeys() bool {
	return r.Stored != nil && r.Text != nil || r.Limiter != nil && r.Key != nil
}

// bucket returns that of what was typed, a text for each of Parts.
func (r *Rule) bucket(parts []string) bucket {
	if r.Stored != nil {
		return bucket{rule: *r, text: r.Text(parts)}
	}
	return bucket{rule: *r, key: r.Key(parts)}
}

// peek says whether one token could be taken now. Only a store can fail.
func (b *bucket) peek(ctx context.Context) (engine.Decision, error) {
	if b.rule.Stored != nil {
		return b.rule.Stored.Peek(ctx, b.text, 1)
	}
	return b.rule.Limiter.PeekKey(b.key, 1), nil
}

// reset makes the key as if it had taken nothing. Only a store can fail.
func (b *bucket) reset(ctx context.Context) error {
	if b.rule.Stored != nil {
		return b.rule.Stored.Reset(ctx, b.text)
	}
	b.rule.Limiter.ResetKey(b.key)
	return nil
}

// identity returns what the bucket is called among the refusals.
func (b *bucket) identity(r *refusals) identity {
	if b.rule.Stored != nil {
		return r.stored(b.rule.Name, b.text)
	}
	return identity{rule: b.rule.Name, key: b.key}
}
