package limits_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
)

// A database is a store that decides all asks of a request in one call.
type database struct {
	calls, refunds int
	take, refund   error // the errors of the next calls
}

type table struct {
	db      *database
	limiter *engine.Limiter
}

func (t table) Policy() engine.Policy { return t.limiter.Policy(0) }

func (t table) Quota(engine.Policy) (limits.Source, error) { return nil, errors.New("no quotas here") }

func (t table) Store() limits.Store { return t.db }

func limiterOf(a *limits.Ask) *engine.Limiter {
	if o, ok := a.Source.(odd); ok {
		return o.limiter
	}
	return a.Source.(table).limiter
}

func (d *database) TakeAll(_ context.Context, asks []limits.Ask) error {
	d.calls++
	if d.take != nil {
		return d.take
	}
	for i := range asks {
		a := &asks[i]
		l := limiterOf(a)
		if a.Decision = l.Take(a.Key, a.N); !a.Decision.Allowed {
			for _, before := range asks[:i] {
				limiterOf(&before).Refund(limiterOf(&before).Key(before.Key), before.N)
			}
			return nil
		}
	}
	return nil
}

func (d *database) RefundAll(ctx context.Context, asks []limits.Ask) error {
	d.refunds++
	if d.refund != nil {
		return d.refund
	}
	for _, a := range asks {
		limiterOf(&a).Refund(limiterOf(&a).Key(a.Key), a.N)
	}
	return ctx.Err()
}

func (t table) left() uint64 { return t.limiter.Peek(t.limiter.Key("number:0"), 0).Remaining }

func stored(t testing.TB, c *testclock.Clock, db *database, name string, burst uint64) (table, limits.Limit[int]) {
	in := table{db, c.Burst(t, burst)}
	return in, limits.Limit[int]{Name: name, Source: in, OnLoss: limits.Closed, Key: limits.Everyone[int]}
}

func inMemory(t testing.TB, c *testclock.Clock, name string, burst uint64) (*engine.Limiter, limits.Limit[int]) {
	l := c.Burst(t, burst)
	return l, limits.Limit[int]{Name: name, Limiter: l, Key: limits.Everyone[int]}
}

func newSet(t testing.TB, list ...limits.Limit[int]) (*limits.Set[int], *[]error) {
	t.Helper()
	var failures []error
	s, err := limits.New(list, limits.Options[int]{OnError: func(_ string, err error) { failures = append(failures, err) }})
	require.NoError(t, err)
	return s, &failures
}

func outcomes(res *limits.Result[int]) (all []limits.Outcome) {
	for i := range res.Len() {
		all = append(all, res.Check(i).Outcome)
	}
	return all
}

// TestOneStoreIsAskedOnce: one call decides all limits in a store, after the limits in memory.
func TestOneStoreIsAskedOnce(t *testing.T) {
	c, db := testclock.New(), &database{}
	wide, first := stored(t, c, db, "wide", 9)
	narrow, third := stored(t, c, db, "narrow", 2)
	memory, second := inMemory(t, c, "memory", 3)
	s, failures := newSet(t, first, second, third)
	for range 2 {
		res := s.Decide(t.Context(), 0)
		assert.Equal(t, limits.Admitted, res.Verdict())
	}
	assert.Equal(t, 2, db.calls)

	res := s.Decide(t.Context(), 0)
	assert.Equal(t, limits.Limited, res.Verdict())
	assert.Equal(t, []limits.Outcome{limits.NotTaken, limits.NotTaken, limits.Refused}, outcomes(&res))
	assert.Equal(t, time.Second, res.RetryAfter())
	assert.EqualValues(t, 7, wide.left(), "the store has taken from none")
	assert.EqualValues(t, 1, memory.Peek(memory.KeyUint64(0), 0).Remaining, "what was taken in memory is back")
	assert.Zero(t, db.refunds, "there is nothing to give back to the store")

	memory.TakeKey(memory.KeyUint64(0), 1)
	asked := db.calls
	res = s.Decide(t.Context(), 0)
	assert.Equal(t, asked, db.calls, "a refusal in memory asks no store")
	assert.Equal(t, []limits.Outcome{limits.NotTaken, limits.Refused, limits.NotTaken}, outcomes(&res))
	assert.False(t, res.Check(0).Answered())
	assert.Zero(t, narrow.left())
	assert.Empty(t, *failures)
}

// TestTwoStores: if the second store refuses or fails, the first gets its tokens back.
func TestTwoStores(t *testing.T) {
	gone := errors.New("gone")
	for _, test := range []struct {
		name   string
		second func(*database, *engine.Limiter)
		want   limits.Verdict
	}{
		{"refuses", func(_ *database, l *engine.Limiter) { l.Take("number:0", 2) }, limits.Limited},
		{"fails", func(db *database, _ *engine.Limiter) { db.take = gone }, limits.Unavailable},
	} {
		c, one, two := testclock.New(), &database{}, &database{}
		a, first := stored(t, c, one, "first", 2)
		b, second := stored(t, c, two, "second", 2)
		memory, third := inMemory(t, c, "memory", 2)
		s, failures := newSet(t, first, second, third)
		test.second(two, b.limiter)
		res := s.Decide(t.Context(), 0)
		assert.Equal(t, test.want, res.Verdict(), test.name)
		assert.EqualValues(t, 2, a.left(), test.name)
		assert.EqualValues(t, 2, memory.Peek(memory.KeyUint64(0), 0).Remaining, test.name)
		assert.Equal(t, limits.NotTaken, res.Check(0).Outcome, test.name)
		assert.Len(t, *failures, int(s.Failures()), test.name)
	}
}

// TestAStoreThatFailsInTheUndo: tokens that cannot be given back stay taken, and the decision stays a refusal.
func TestAStoreThatFailsInTheUndo(t *testing.T) {
	gone := errors.New("gone")
	c, one, two := testclock.New(), &database{refund: gone}, &database{}
	a, first := stored(t, c, one, "first", 2)
	b, second := stored(t, c, two, "second", 1)
	first.OnLoss = limits.Open
	s, failures := newSet(t, first, second)
	b.limiter.Take("number:0", 1)
	res := s.Decide(t.Context(), 0)
	assert.Equal(t, limits.Limited, res.Verdict())
	assert.Equal(t, []error{gone}, *failures)
	assert.EqualValues(t, 1, a.left(), "the tokens stay taken")
	c.Advance(time.Minute)
	assert.EqualValues(t, 2, a.left(), "and come back by themselves")
}

// TestOneStoreOfSeveralPolicies: when a store fails, each limit decides by its own OnLoss.
func TestOneStoreOfSeveralPolicies(t *testing.T) {
	gone := errors.New("gone")
	c, db := testclock.New(), &database{take: gone}
	_, open := stored(t, c, db, "open", 9)
	open.OnLoss = limits.Open
	_, local := stored(t, c, db, "local", 9)
	local.OnLoss, local.Limiter = limits.Local, c.Burst(t, 1)
	s, failures := newSet(t, open, local)
	res := s.Decide(t.Context(), 0)
	assert.True(t, res.Allowed())
	assert.Equal(t, []limits.Outcome{limits.Failed, limits.Allowed}, outcomes(&res))
	assert.Equal(t, 1, db.calls)
	assert.Len(t, *failures, 2)
	res = s.Decide(t.Context(), 0)
	assert.Equal(t, limits.Limited, res.Verdict())
	assert.Equal(t, []limits.Outcome{limits.Failed, limits.Refused}, outcomes(&res))

	_, closed := stored(t, c, db, "closed", 9)
	s, _ = newSet(t, open, local, closed)
	c.Advance(time.Second)
	res = s.Decide(t.Context(), 0)
	assert.Equal(t, limits.Unavailable, res.Verdict())
	assert.EqualValues(t, 1, local.Limiter.Peek(local.Limiter.KeyUint64(0), 0).Remaining, "what is unavailable takes nothing")
}

// TestShadowsInAStore: limits in shadow mode take after the others, and never refuse.
func TestShadowsInAStore(t *testing.T) {
	c, db := testclock.New(), &database{}
	tried, shadow := stored(t, c, db, "tried", 1)
	shadow.Shadow = true
	_, real := inMemory(t, c, "real", 2)
	s, failures := newSet(t, shadow, real)
	for _, want := range [][]limits.Outcome{
		{limits.Allowed, limits.Allowed}, {limits.ShadowRefused, limits.Allowed}, {limits.NotTaken, limits.Refused},
	} {
		res := s.Decide(t.Context(), 0)
		assert.Equal(t, want, outcomes(&res))
	}
	assert.Zero(t, tried.left())
	assert.Equal(t, 2, db.calls, "a refused request asks no shadow")
	c.Advance(time.Minute)
	db.take = errors.New("gone")
	res := s.Decide(t.Context(), 0)
	assert.True(t, res.Allowed(), "a shadow that is closed refuses nothing")
	assert.Equal(t, []limits.Outcome{limits.Failed, limits.Allowed}, outcomes(&res))
	assert.Len(t, *failures, 1)
}

// TestFinishGivesBackToStores: Finish makes one call for each store, even if the client has gone.
func TestFinishGivesBackToStores(t *testing.T) {
	c, db := testclock.New(), &database{}
	a, first := stored(t, c, db, "first", 5)
	b, second := stored(t, c, db, "second", 5)
	failed := func(_ int, outcome int) bool { return outcome >= 500 }
	first.Refund, second.Refund = failed, failed
	second.Cost = func(int) uint64 { return 3 }
	s, failures := newSet(t, first, second)
	ctx, cancel := context.WithCancel(t.Context())
	res := s.Decide(ctx, 0)
	require.True(t, res.Allowed())
	assert.EqualValues(t, []uint64{4, 2}, []uint64{a.left(), b.left()})
	cancel()
	res.Finish(ctx, 0, 503)
	res.Finish(ctx, 0, 503)
	assert.EqualValues(t, []uint64{5, 5}, []uint64{a.left(), b.left()})
	assert.Equal(t, 1, db.refunds)
	assert.Equal(t, []limits.Outcome{limits.Refunded, limits.Refunded}, outcomes(&res))
	assert.Empty(t, *failures)

	res = s.Decide(t.Context(), 0)
	res.Finish(t.Context(), 0, 200)
	assert.EqualValues(t, []uint64{4, 2}, []uint64{a.left(), b.left()})
}

type backend struct {
	*engine.Limiter
	take, refund error
}

func (b backend) Take(_ context.Context, key string, n uint64) (engine.Decision, error) {
	if b.take != nil {
		return engine.Decision{RetryAfter: time.Second, Limit: 1}, b.take
	}
	return b.Limiter.Take(key, n), nil
}

func (b backend) Refund(_ context.Context, key string, n uint64) error {
	b.Limiter.Refund(b.Limiter.Key(key), n)
	return b.refund
}

// TestABackendTwiceInARequest: if a request names a backend twice, its source takes for both limits or for none.
func TestABackendTwiceInARequest(t *testing.T) {
	l := testclock.New().Burst(t, 3)
	gone := errors.New("gone")
	source, err := limits.NewSource(backend{l, nil, nil}, l.Policy(0), nil)
	require.NoError(t, err)
	by := func(id uint64) limits.KeyFunc[int] {
		return func(h limits.Hasher, _ int) (engine.Key, bool) { return h.KeyUint64(id), true }
	}
	s, failures := newSet(t, limits.Limit[int]{Name: "a", Source: source, Key: by(1)}, limits.Limit[int]{Name: "b", Source: source, Key: by(2)})
	l.Take("number:2", 3)
	res := s.Decide(t.Context(), 0)
	assert.Equal(t, []limits.Outcome{limits.NotTaken, limits.Refused}, outcomes(&res))
	assert.EqualValues(t, 3, l.Peek(l.Key("number:1"), 0).Remaining)
	assert.Empty(t, *failures)

	source, err = limits.NewSource(backend{l, nil, gone}, l.Policy(0), nil)
	require.NoError(t, err)
	s, failures = newSet(t, limits.Limit[int]{Name: "a", Source: source, Key: by(1)}, limits.Limit[int]{Name: "b", Source: source, Key: by(2)})
	res = s.Decide(t.Context(), 0)
	assert.Equal(t, limits.Limited, res.Verdict(), "a refusal stands, though an undo has failed")
	require.Len(t, *failures, 1)
	assert.ErrorIs(t, (*failures)[0], gone)

	// A decision with an error, as redislimit.FailClosed makes, is a failure of the store and not a refusal.
	source, err = limits.NewSource(backend{l, gone, nil}, l.Policy(0), nil)
	require.NoError(t, err)
	s, _ = newSet(t, limits.Limit[int]{Name: "a", Source: source, Key: by(1), OnLoss: limits.Closed})
	res = s.Decide(t.Context(), 0)
	assert.Equal(t, limits.Unavailable, res.Verdict())

	_, err = limits.NewSource(nil, l.Policy(0), nil)
	assert.ErrorContains(t, err, "the backend of token bucket 1/s burst 3 is nil")
	_, err = source.Quota(engine.Unlimited())
	assert.ErrorContains(t, err, "the store has no quotas")
}

// unsure is a source for which its store cannot decide.
type unsure struct {
	table
	err error
}

func (u unsure) Store() limits.Store { return partly{u.db} }

type partly struct{ *database }

func (p partly) TakeAll(ctx context.Context, asks []limits.Ask) error {
	var sure []limits.Ask
	for i := range asks {
		if u := asks[i].Source.(unsure); u.err != nil {
			asks[i].Err = u.err
			continue
		}
		one := asks[i]
		one.Source = one.Source.(unsure).table
		sure = append(sure, one)
	}
	err := p.database.TakeAll(ctx, sure)
	for i := range asks {
		if asks[i].Err == nil {
			asks[i].Decision, sure = sure[0].Decision, sure[1:]
		}
	}
	return err
}

func (p partly) RefundAll(ctx context.Context, asks []limits.Ask) error {
	for i := range asks {
		asks[i].Source = asks[i].Source.(unsure).table
	}
	return p.database.RefundAll(ctx, asks)
}

// TestASourceThatAloneFails: if one source of a store fails, only its limit follows OnLoss.
func TestASourceThatAloneFails(t *testing.T) {
	cause := errors.New("a value of another type")
	for _, test := range []struct {
		onLoss limits.FailurePolicy
		left   uint64
		first  limits.Verdict
		second limits.Verdict
	}{
		{limits.Open, 0, limits.Admitted, limits.Limited},
		{limits.Closed, 1, limits.Unavailable, limits.Unavailable},
	} {
		c, db := testclock.New(), &database{}
		in, sure := stored(t, c, db, "sure", 1)
		sure.Source = unsure{in, nil}
		_, broken := stored(t, c, db, "broken", 9)
		broken.Source, broken.OnLoss = unsure{broken.Source.(table), cause}, test.onLoss
		s, failures := newSet(t, sure, broken)
		res := s.Decide(t.Context(), 0)
		assert.Equal(t, test.first, res.Verdict())
		assert.Equal(t, limits.Failed, res.Check(1).Outcome)
		assert.Equal(t, []error{cause}, *failures)
		assert.Equal(t, test.left, in.left())
		res = s.Decide(t.Context(), 0)
		assert.Equal(t, test.second, res.Verdict())
	}
}
