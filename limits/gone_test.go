package limits_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
)

// TestAClientThatHasGonePassesNoStore: if a store gives up because the client has gone, OnLoss does not decide.
func TestAClientThatHasGonePassesNoStore(t *testing.T) {
	c, db := testclock.New(), &database{take: context.Canceled}
	memory, first := inMemory(t, c, "memory", 2)
	_, second := stored(t, c, db, "stored", 2)
	second.OnLoss = limits.Open
	s, failures := newSet(t, first, second)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	res := s.Decide(ctx, 0)
	assert.Equal(t, limits.Ended, res.Verdict())
	assert.ErrorIs(t, res.Err(), context.Canceled)
	assert.EqualValues(t, 2, memory.Peek(memory.KeyUint64(0), 0).Remaining)
	assert.Empty(t, *failures)

	db.take = errors.New("gone")
	res = s.Decide(t.Context(), 0)
	assert.True(t, res.Allowed(), "a store that fails is another thing")
}

// TestSourcesThatMakeNoSense: no decision or refund panics because of a source with invalid results.
func TestSourcesThatMakeNoSense(t *testing.T) {
	c := testclock.New()
	in, good := stored(t, c, &database{}, "stored", 2)
	for want, source := range map[string]limits.Source{
		"the Store of its Source is nil":                          odd{table: in},
		"is a limits_test.uncomparable, which cannot be compared": odd{table: in, store: uncomparable{database: &database{}}},
	} {
		l := good
		l.Source = source
		_, err := limits.New([]limits.Limit[int]{l}, limits.Options[int]{})
		assert.ErrorContains(t, err, want)
	}

	none := good
	none.Source, none.Quota = odd{table: in, store: &database{}}, func(int) (engine.Policy, error) { return engine.Unlimited(), nil }
	s, failures := newSet(t, none)
	res := s.Decide(t.Context(), 0)
	assert.Equal(t, limits.Unavailable, res.Verdict())
	assert.Len(t, *failures, 1)

	// Only the store of a source must be comparable.
	gone := errors.New("gone")
	unlike := good
	unlike.Source = odd{table: in, store: &database{refund: gone}, not: func() {}}
	unlike.Refund = func(int, int) bool { return true }
	unlike.Quota = nil
	s, failures = newSet(t, unlike)
	res = s.Decide(t.Context(), 0)
	assert.True(t, res.Allowed())
	res.Finish(t.Context(), 0, 0)
	assert.Equal(t, []error{gone}, *failures)
}

type odd struct {
	table
	store limits.Store
	not   func()
}

func (o odd) Store() limits.Store { return o.store }

func (odd) Quota(engine.Policy) (limits.Source, error) { return nil, nil }

type uncomparable struct {
	*database
	_ func()
}

type faulty struct{ *database }

func (*faulty) TakeAll(context.Context, []limits.Ask) error { panic("a fault") }

// TestAPanicKeepsNothing: after a panic, tokens in memory and the place of the waiting request are given back.
func TestAPanicKeepsNothing(t *testing.T) {
	c := testclock.New()
	memory, first := inMemory(t, c, "memory", 2)
	patient, second := inMemory(t, c, "patient", 1)
	second.MaxWait = time.Minute
	in, third := stored(t, c, &database{}, "stored", 2)
	third.Source = odd{table: in, store: &faulty{}}
	s, _ := newSet(t, first, second, third)
	patient.TakeKey(patient.KeyUint64(0), 1)
	assert.Panics(t, func() { s.Decide(t.Context(), 0) })
	assert.EqualValues(t, 2, memory.Peek(memory.KeyUint64(0), 0).Remaining)
	assert.Zero(t, s.Waiting())
	c.Advance(time.Second)
	assert.True(t, patient.Peek(patient.KeyUint64(0), 1).Allowed, "its reservation is cancelled")
}

// TestAPanicAtTheEndLosesNoRefund: if one limit panics at the end of a request, the other limits still give their
// tokens back.
func TestAPanicAtTheEndLosesNoRefund(t *testing.T) {
	c := testclock.New()
	yes := func(int, int) bool { return true }
	for name, spoil := range map[string]func(second *limits.Limit[int], in table){
		"Refund": func(second *limits.Limit[int], _ table) { second.Refund = func(int, int) bool { panic("a fault") } },
		"store":  func(second *limits.Limit[int], in table) { second.Source = odd{table: in, store: &broken{&database{}}} },
	} {
		t.Run(name, func(t *testing.T) {
			before, first := stored(t, c, &database{}, "first", 2)
			in, second := stored(t, c, &database{}, "second", 2)
			after, third := stored(t, c, &database{}, "third", 2)
			first.Refund, second.Refund, third.Refund = yes, yes, yes
			spoil(&second, in)
			s, _ := newSet(t, first, second, third)
			res := s.Decide(t.Context(), 0)
			assert.True(t, res.Allowed())
			assert.PanicsWithValue(t, "a fault", func() { res.Finish(t.Context(), 0, 0) })
			assert.EqualValues(t, 2, before.left())
			assert.Equal(t, name == "store", after.left() == 2, "it was not asked whether it gives back")
		})
	}
}

type broken struct{ *database }

func (*broken) RefundAll(context.Context, []limits.Ask) error { panic("a fault") }
