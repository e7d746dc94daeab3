package limits

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir/engine"
)

// A Source decides a limit whose records are outside this process, such as in Redis. It gets keys as text
// ([KeyFunc.Text]), because keys must mean the same in every process. [NewSource] makes a Source from a [Backend].
type Source interface {
	// Policy returns the policy that the source applies.
	Policy() engine.Policy
	// Quota returns the same source with other numbers, or an error, without a call to the store.
	Quota(engine.Policy) (Source, error)
	// Store returns the store that decides. It must not be nil, and its type must be comparable, such as a pointer.
	// Sources with equal stores (==) are decided in one call.
	Store() Store
}

// A Tiered is a source with several tiers ([Limit].Tier). The tiers share the keys: when a key changes its tier, the
// tokens that it has taken still count.
type Tiered interface {
	Source
	// Tier returns the source of a tier, without a call to the store, or nil for a missing tier. Tier 0 is the source
	// itself.
	Tier(tier int) Source
}

// A Holder is a source that can set Held in an [Ask], and that supports Least. A limit with Hold, or of requests in
// flight ([engine.Concurrency]), needs a Holder.
type Holder interface {
	Source
	// Holds reports whether the source sets Held and supports Least, because it may have the method without doing so.
	Holds() bool
}

// A Store decides several limits of one request together. Its methods are called from many goroutines. They must return
// soon after the context is done, and the store should also have its own timeout.
type Store interface {
	// TakeAll takes the tokens of all asks or, if one ask is refused, no tokens. It sets the decision of each ask:
	//
	//   - An ask that the store did not reach keeps the zero Decision.
	//   - An ask that the store could not decide gets an Err, and the other asks are decided without it.
	//
	// If TakeAll returns an error and refuses no ask, it has decided nothing, but may have taken tokens. If it returns
	// an error and refuses an ask, it could not give back the tokens of other asks.
	TakeAll(ctx context.Context, asks []Ask) error
	// RefundAll gives back the tokens that TakeAll took, and returns when the store has them. If an ask has a Held that
	// is not settled, RefundAll gives back all of it. The context of this call does not end with the request.
	RefundAll(ctx context.Context, asks []Ask) error
}

// An Ask is a request to one source.
type Ask struct {
	Source   Source
	Key      string // the text of the key
	N        uint64 // tokens
	Hold     bool   // N is an estimate: an N above the limit counts as the limit
	Least    uint64 // with Hold; if not 0: a key with at least this many tokens gives all that it has, up to N
	Decision engine.Decision
	Err      error // the reason why this ask has no decision
	// Held stands for the tokens taken, if the ask is allowed and has Hold, or the source's policy is
	// [engine.Concurrency].
	Held Held

	check int // index of the check in the result
}

// A Backend is a limiter in a store that takes from one key at a time.
type Backend interface {
	// Take takes either n tokens from the key or none.
	Take(ctx context.Context, key string, n uint64) (engine.Decision, error)
	// Refund gives back n tokens that Take has taken.
	Refund(ctx context.Context, key string, n uint64) error
}

// NewSource makes a source from a backend. A nil backend is an error. p is the backend's policy, which answers to
// clients use. The function quota returns the same backend with other numbers, or an error. It is nil for a backend
// without quotas.
func NewSource(b Backend, p engine.Policy, quota func(engine.Policy) (Backend, error)) (Source, error) {
	if b == nil {
		return nil, fmt.Errorf("limits: NewSource: the backend of %v is nil", p)
	}
	return &backendSource{b, p, quota}, nil
}

// backendSource is the source that NewSource makes, and its own store.
type backendSource struct {
	backend Backend
	policy  engine.Policy
	quota   func(engine.Policy) (Backend, error)
}

func (s *backendSource) Policy() engine.Policy { return s.policy }

func (s *backendSource) Quota(p engine.Policy) (Source, error) {
	if s.quota == nil {
		return nil, fmt.Errorf("the store has no quotas, but the request has one of %v", p)
	}
	b, err := s.quota(p)
	if err != nil {
		return nil, err
	}
	return NewSource(b, p, s.quota)
}

func (s *backendSource) Store() Store { return s }

// TakeAll gets more than one ask if two limits of a request share this source.
func (s *backendSource) TakeAll(ctx context.Context, asks []Ask) error {
	for i := range asks {
		a := &asks[i]
		d, err := s.backend.Take(ctx, a.Key, a.N)
		if err == nil {
			a.Decision = d
		}
		if err != nil || !d.Allowed {
			if undoErr := s.RefundAll(context.WithoutCancel(ctx), asks[:i]); undoErr != nil {
				err = errors.Join(err, undoErr)
			}
			return err
		}
	}
	return nil
}

// RefundAll gives back the tokens of all asks, even after an error.
func (s *backendSource) RefundAll(ctx context.Context, asks []Ask) (err error) {
	for i := range asks {
		if refundErr := s.backend.Refund(ctx, asks[i].Key, asks[i].N); refundErr != nil {
			err = errors.Join(err, refundErr)
		}
	}
	return err
}
