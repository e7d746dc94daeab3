package engine

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sort"
	"sync"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/procid"
	"github.com/weir-go/weir/internal/spread"
	"github.com/weir-go/weir/shard"
)

// A Spread is a limiter of one token bucket for all requests: a limit of a whole service, or of a large tenant. A
// [Limiter] writes one word for these on every processor, and gets slower with each. In a Spread each processor holds
// tokens that the bucket has charged already, and most requests write a word of their processor only. Make one with
// [NewSpread]. Its methods may be called from any goroutine at any time; those that decide are lock-free and do not
// allocate.
//
// Its law is a little wider than a Limiter's. Over any time t it admits at most burst + rate * (t + 1ms). A request is
// refused only if an exact bucket that had admitted the same would refuse it: the tokens that other processors hold
// are counted, and taken from them, before a refusal. So it is never stricter than a Limiter. At rates of less than
// two tokens a millisecond for each processor, processors hold nothing, and it is as exact as a Limiter.
//
// It is for [TokenBucket] only, and has no keys, tiers, reservations or waiting. The processors are those of
// GOMAXPROCS when it is made, rounded up to a power of two, 128 at most. With more of them later some share a cell,
// which is slower; the law is the same.
type Spread struct {
	bucket  *spread.Bucket
	clock   *clock
	maxDebt uint64
	setting sync.Mutex // held by SetPolicy
	keeper  *background
}

// NewSpread returns a spread limiter of a [TokenBucket] policy. The bucket is full. The options are [ClockPrecise],
// [ClockFunc] and [MaxDebt]; the others are errors. A burst, or a debt, that takes hours to come back is an error that
// names the range. It takes 128 bytes for each processor.
//
// A Spread calibrates its clock in the background. Close stops that, and the garbage collector does if it finds one
// that was dropped.
func NewSpread(policy Policy, options ...Option) (*Spread, error) {
	c := config{maxKeys: DefaultMaxKeys, interval: DefaultSweepInterval}
	for i, option := range options {
		if option == nil {
			return nil, fmt.Errorf("engine: option %d of %d is nil", i+1, len(options))
		}
		if err := option(&c); err != nil {
			return nil, err
		}
	}
	if err := c.spreads(); err != nil {
		return nil, err
	}
	clock, err := newClock(c.clock, c.read)
	if err != nil {
		return nil, err
	}
	cells := 1
	for cells < runtime.GOMAXPROCS(0) && cells <= spread.MaxCells/2 {
		cells *= 2
	}
	s := &Spread{clock: clock, maxDebt: c.terms.maxDebt, keeper: &background{clock: clock, stop: make(chan struct{})}}
	terms, err := s.terms(policy, cells)
	if err != nil {
		return nil, err
	}
	s.bucket = spread.New(terms, clock.nanos)
	s.keeper.running.Go(s.keeper.calibrate)
	runtime.AddCleanup(s, (*background).halt, s.keeper)
	return s, nil
}

// spreads returns an error if the options are for limiters that have a table.
func (c *config) spreads() error {
	if c.maxKeys != DefaultMaxKeys || c.shards != 0 || c.overflow != 0 || c.stable || c.prefault || c.shared != "" ||
		c.replaces || c.interval != DefaultSweepInterval || len(c.tiers) > 0 || c.observer != nil || c.clock == clockCoarse ||
		c.terms.maxQuota != 0 || c.terms.refusals != ChargeNothing {
		return errors.New("engine: NewSpread: one bucket takes the options ClockPrecise, ClockFunc and MaxDebt, and no others")
	}
	return nil
}

// terms checks a policy and makes terms of it.
func (s *Spread) terms(policy Policy, cells int) (*spread.Terms, error) {
	if policy.algorithm != AlgorithmTokenBucket || policy.grant != grantsLimit || policy.aligned {
		return nil, fmt.Errorf("engine: %v: want engine.TokenBucket(rate, burst) for one bucket that is spread", policy)
	}
	if _, err := policy.build(policy.limit); err != nil {
		return nil, err
	}
	terms, err := s.termsOf(policy, policy.limit, cells)
	if err == nil {
		return terms, nil
	}
	most := sort.Search(int(min(policy.limit, math.MaxInt32))-1, func(i int) bool {
		_, err := s.termsOf(policy, uint64(i+1), cells)
		return err != nil
	})
	if most == 0 {
		return nil, fmt.Errorf("engine: %v: %w: want a higher rate, with which one token comes back within two hours", policy, err)
	}
	return nil, fmt.Errorf("engine: %v: %w: want a burst of at most %d", policy, err, most)
}

// termsOf makes terms of a policy with another burst.
func (s *Spread) termsOf(policy Policy, burst uint64, cells int) (*spread.Terms, error) {
	of := policy
	of.limit = burst
	algorithm, err := of.build(burst)
	if err != nil {
		return nil, err
	}
	return spread.NewTerms(algorithm.(*atomicbucket.TokenBucket), cells, s.maxDebt, policy)
}

// calibrate keeps the clock, as sweep does.
func (b *background) calibrate() {
	ticker := time.NewTicker(recalibrateEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if b.clock.counter != nil {
				b.clock.counter.recalibrate()
			}
		case <-b.stop:
			return
		}
	}
}

// Close stops the calibration of the clock. The limiter decides as before. Closing twice is harmless. The error is
// always nil; it is there for io.Closer.
func (s *Spread) Close() error {
	s.requireMade()
	s.keeper.halt()
	s.keeper.running.Wait()
	return nil
}

// requireMade panics if NewSpread did not make the limiter. Allow, Take and TakeReceipt panic as any use of a nil
// pointer does.
func (s *Spread) requireMade() {
	if s == nil || s.bucket == nil {
		panic("engine: a Spread that is nil or zero: make it with engine.NewSpread, and look at NewSpread's error")
	}
}

// Allow takes one token and reports whether there was one. It reads the clock only if the processor holds none.
func (s *Spread) Allow() bool {
	cell := procid.Pin()
	procid.Unpin()
	return s.bucket.Spend(cell) || s.bucket.Take(cell, 1).Admitted
}

// Take takes n tokens, all or none, and returns the decision. What an admission says of the bucket, Remaining and
// ResetAfter, was so within the last millisecond, and leaves out what other processors hold. What a refusal says is
// exact, as that of a Limiter is. n = 0 takes nothing and is always allowed; n above the limit is never allowed (see
// [Never]).
func (s *Spread) Take(n uint64) (d Decision) {
	if n == 0 {
		return s.Peek(0)
	}
	o := s.take(n)
	d.says(&o, n)
	return d
}

// take is Take of a token or more.
func (s *Spread) take(n uint64) (o spread.Outcome) {
	cell := procid.Pin()
	procid.Unpin()
	if o = s.bucket.SpendAt(cell, n, s.clock.nanos()); !o.Admitted {
		o = s.bucket.Take(cell, n)
	}
	runtime.KeepAlive(s)
	return o
}

// says puts an outcome into the terms of a caller that asked for n tokens.
func (d *Decision) says(o *spread.Outcome, n uint64) {
	limit := o.Terms.Quota.Tokens
	d.Allowed, d.Limit, d.RetryAfter = o.Admitted, limit, 0
	d.Remaining, d.ResetAfter = o.Left()
	switch {
	case n > limit:
		d.RetryAfter = Never
	case !o.Admitted:
		d.RetryAfter = o.Retry(n)
	}
}

// Peek returns the decision that Take(n) would return, and takes nothing: Remaining is what is there now, with what
// processors hold.
func (s *Spread) Peek(n uint64) (d Decision) {
	s.requireMade()
	o := s.bucket.Peek(n)
	d.says(&o, n)
	return d
}

// Owed returns how many tokens were taken and have not come back yet, rounded up: also those above the burst, as after
// [Spread.Charge]. What processors hold is not among them.
func (s *Spread) Owed() uint64 {
	s.requireMade()
	return s.bucket.Owed()
}

// TakeReceipt is [Spread.Take] with a receipt for what was taken. It gives back only what has not come back by itself:
// the cost less rate * the time since. So it gives nothing for a request that took longer than its tokens do, which at
// high rates is soon. After a change of the policy it gives nothing.
func (s *Spread) TakeReceipt(n uint64) (d Decision, r Receipt) {
	s.takeReceipt(&d, &r, n)
	return
}

// takeReceipt is TakeReceipt into d and r, which is zero. The receipt is written first, as by [Limiter.takeReceipt].
func (s *Spread) takeReceipt(d *Decision, r *Receipt, n uint64) {
	if n == 0 {
		*d = s.Peek(0)
		return
	}
	o := s.take(n)
	if o.Admitted {
		r.spread, r.terms, r.hash = s, o.Terms, uint64(o.Nanos)
		r.of.EnterNone(n, shard.Quota{})
	}
	d.says(&o, n)
}

// Charge takes n tokens for what has happened, whether they are there or not, up to [MaxDebt]: without that option 10
// limits, or 1 to 9 if no more fit into a word. What processors hold counts as owed. It returns how many were not
// charged for that.
func (s *Spread) Charge(n uint64) (lost uint64) {
	s.requireMade()
	charged, _ := s.bucket.Charge(n)
	return n - charged
}

// Reset makes the bucket full. Processors keep what they hold.
func (s *Spread) Reset() {
	s.requireMade()
	s.bucket.Reset()
}

// Policy returns the policy, as it was given to NewSpread or by the latest SetPolicy.
func (s *Spread) Policy() Policy {
	s.requireMade()
	return s.bucket.Terms().Source().(Policy)
}

// SetPolicy changes the numbers while the limiter is used. The bucket keeps the tokens that were taken from it, as
// that of a Limiter does, up to [MaxDebt] of the new policy. When SetPolicy returns, all decisions are by the new
// numbers, and processors hold no more than those allow. On an error nothing has changed.
func (s *Spread) SetPolicy(policy Policy) error {
	s.requireMade()
	s.setting.Lock()
	defer s.setting.Unlock()
	terms, err := s.terms(policy, s.bucket.Cells())
	if err != nil {
		return err
	}
	s.bucket.Replace(terms)
	return nil
}
