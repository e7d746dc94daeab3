package admin

import (
	"context"
	"math"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
)

// A Bucket identifies the bucket of one key under a rule. For a limit in memory, Key identifies the bucket. For a limit
// in a store, Text identifies it, and is never empty.
type Bucket struct {
	Key   engine.Key
	Text  string
	Limit engine.Policy // the limit of the key, if its rule has limits from outside; zero if it is unknown
}

// Buckets peeks at the buckets of a rule's keys and resets them. All methods may be called concurrently.
type Buckets interface {
	// Bucket returns the bucket for one typed text per Part. The operator gets the error.
	Bucket(parts []string) (Bucket, error)
	// Peek reports whether one token could be taken now.
	Peek(ctx context.Context, b Bucket) (engine.Decision, error)
	// Reset restores the state before the key's first token was taken.
	Reset(ctx context.Context, b Bucket) error
}

// Local returns the buckets of a limiter. The function key makes a key from the texts that the operator typed.
func Local(l *engine.Limiter, key func(parts []string) engine.Key) Buckets { return inMemory{l, key} }

type inMemory struct {
	limiter *engine.Limiter
	key     func(parts []string) engine.Key
}

func (l inMemory) Bucket(parts []string) (Bucket, error) { return Bucket{Key: l.key(parts)}, nil }

func (l inMemory) Peek(_ context.Context, b Bucket) (engine.Decision, error) {
	return l.limiter.Peek(b.Key, 1), nil
}

func (l inMemory) Reset(_ context.Context, b Bucket) error {
	l.limiter.Reset(b.Key)
	return nil
}

// Constant returns the buckets of a rule whose own limit admits all requests, or refuses all. The rule's tiers, in b,
// may count.
func Constant(b Buckets, admits bool) Buckets { return constant{b, admits} }

type constant struct {
	Buckets
	admits bool
}

func (c constant) Peek(context.Context, Bucket) (engine.Decision, error) {
	if c.admits {
		return engine.Decision{Allowed: true, Limit: math.MaxUint64, Remaining: math.MaxUint64}, nil
	}
	return engine.Decision{RetryAfter: engine.Never}, nil
}

// OneBucket returns the Buckets of a Spread, which has only one bucket. Its method Bucket first calls the function
// carry. This function charges the bucket with the tokens that keys owe to previous limiters.
func OneBucket(s *engine.Spread, carry func()) Buckets { return oneBucket{s, carry} }

type oneBucket struct {
	limiter *engine.Spread
	carry   func()
}

func (b oneBucket) Bucket([]string) (Bucket, error) {
	b.carry()
	return Bucket{}, nil
}

func (b oneBucket) Peek(context.Context, Bucket) (engine.Decision, error) {
	return b.limiter.Peek(1), nil
}

func (b oneBucket) Reset(context.Context, Bucket) error {
	b.limiter.Reset()
	return nil
}

// Stored returns the buckets of a limiter in a store. It needs two functions:
//
//   - The function text makes the key from the texts that the operator typed.
//   - The function limit returns the limit of the key from the same texts. For nil, it returns the limit of an unknown
//     key. If all keys have the limiter's own limit, the function limit is nil.
func Stored(l *redislimit.Limiter, text func(parts []string) string, limit func(parts []string) engine.Policy) Buckets {
	return inStore{l, text, limit}
}

type inStore struct {
	limiter *redislimit.Limiter
	text    func(parts []string) string
	limit   func(parts []string) engine.Policy
}

func (s inStore) Bucket(parts []string) (Bucket, error) {
	b := Bucket{Text: s.text(parts)}
	if s.limit != nil {
		b.Limit = s.limit(parts)
	}
	return b, nil
}

func (s inStore) Peek(ctx context.Context, b Bucket) (engine.Decision, error) {
	if s.limit == nil {
		return s.limiter.Peek(ctx, b.Text, 1)
	}
	if b.Limit == (engine.Policy{}) {
		b.Limit = s.limit(nil)
	}
	quota, err := s.limiter.Quota(b.Limit)
	if err != nil {
		return engine.Decision{}, err
	}
	return quota.Peek(ctx, b.Text, 1)
}

func (s inStore) Reset(ctx context.Context, b Bucket) error { return s.limiter.Reset(ctx, b.Text) }
