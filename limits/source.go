package limits

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir/engine"
)

// A Source decides a limit whose state is outside this process, such as in Redis. Keys come as text ([KeyFunc.Text]),
// because a source needs exact keys that mean the same everywhere. Making the text allocates, which is little compared
// with the way to the store.
//
// [NewSource] makes one of a [Backend].
type Source interface {
	// Policy returns the limit that the source decides by.
	Policy() engine.Policy
	// Quota returns the same source under other numbers, or an error if it does not accept them. It does not ask the
	// store.
	Quota(engine.Policy) (Source, error)
	// Store returns what decides, not nil: a pointer, or another type that can be compared. Sources whose stores are
	// equal (==) are asked in one call.
	Store() Store
}

// A Tiered source has limits for some requests ([Limit].Tier), over the same keys: a key keeps what it has used when it
// changes its tier.
type Tiered interface {
	Source
	// Tier returns the source of a tier, 0 for its own; nil for one that it does not have. It asks no store.
	Tier(tier int) Source
}

// A Holder is a source that sets Held in an [Ask], and does what its Least says. The source of a limit with Hold must
// be one, and so must that of a limit of requests in flight ([engine.Concurrency]).
type Holder interface {
	Source
	// Holds reports whether it does.
	Holds() bool
}

// A Store decides limits of one request together. Its methods are called from many goroutines. They return soon after
// the context is done; the store sets its own timeout, too.
type Store interface {
	// TakeAll takes what is asked from all sources or, if one refuses, from none, and sets the decision of each ask.
	// One that it did not come to keeps the zero Decision. One that it could not decide gets an Err, and the others are
	// decided without it. If TakeAll returns an error and no ask is refused, it decided nothing, and it may have taken.
	// If an ask is refused, an error says that tokens of others could not be given back.
	TakeAll(ctx context.Context, asks []Ask) error
	// RefundAll gives back what TakeAll took, of an ask with a Held all of that if it is not settled, and waits until
	// the store has it. Its context is not done when that of the request is.
	RefundAll(ctx context.Context, asks []Ask) error
}

// An Ask is what a request asks of one source.
type Ask struct {
	Source   Source
	Key      string // the text of the key
	N        uint64 // tokens
	Hold     bool   // N is an estimate, of which the limit at most is taken
	Least    uint64 // of a Hold, if not 0: if so many are there, as many as there are are taken, N at most
	Decision engine.Decision
	Err      error // why this source alone has no decision
	// Held is what was taken, of an ask with Hold and of a source under [engine.Concurrency], if it is allowed.
	Held Held

	check int // of the result
}

// A Backend is a limiter in a store that takes from one key at a time. A limiter of package redislimit is one.
type Backend interface {
	// Take takes n tokens from the key, all or none.
	Take(ctx context.Context, key string, n uint64) (engine.Decision, error)
	// Refund gives n tokens back that were taken.
	Refund(ctx context.Context, key string, n uint64) error
}

// NewSource returns a source of a backend, which is asked about one limit at a time. p is the backend's policy, from
// which fronts write the limit into their answers. quota returns the backend under other numbers, or an error if it
// does not accept them. It is nil for a backend that has no quotas.
//
// A nil backend is an error.
func NewSource(b Backend, p engine.Policy, quota func(engine.Policy) (Backend, error)) (Source, error) {
	if b == nil {
		return nil, fmt.Errorf("limits: NewSource: the backend of %v is nil", p)
	}
	return &single{b, p, quota}, nil
}

// single is the source of a backend, and a store of its own.
type single struct {
	backend Backend
	policy  engine.Policy
	quota   func(engine.Policy) (Backend, error)
}

func (s *single) Policy() engine.Policy { return s.policy }

func (s *single) Quota(p engine.Policy) (Source, error) {
	if s.quota == nil {
		return nil, fmt.Errorf("the store has no quotas, but the request has one of %v", p)
	}
	b, err := s.quota(p)
	if err != nil {
		return nil, err
	}
	return NewSource(b, p, s.quota)
}

func (s *single) Store() Store { return s }

// TakeAll takes one after the other. A request has more than one ask here if two of its limits share a source.
func (s *single) TakeAll(ctx context.Context, asks []Ask) error {
	for i := range asks {
		a := &asks[i]
		d, err := s.backend.Take(ctx, a.Key, a.N)
		if err == nil {
			a.Decision = d
		}
		if err != nil || !d.Allowed {
			if undo := s.RefundAll(context.WithoutCancel(ctx), asks[:i]); undo != nil {
				err = errors.Join(err, undo)
			}
			return err
		}
	}
	return nil
}

// RefundAll gives back to all, also after an error.
func (s *single) RefundAll(ctx context.Context, asks []Ask) (err error) {
	for i := range asks {
		if failed := s.backend.Refund(ctx, asks[i].Key, asks[i].N); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return err
}
