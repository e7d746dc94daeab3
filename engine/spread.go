package engine

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/procid"
	"github.com/weir-go/weir/internal/spread"
	"github.com/weir-go/weir/shard"
)

// A Spread is a limiter with one token bucket for all requests, such as the limit of a whole service. Each processor
// takes tokens in advance and holds them, so most requests write only a word of their own processor. In a [Limiter],
// all processors would write the same word, which gets slower with each processor. Make a Spread with [NewSpread]. All
// its methods are safe for concurrent use. The methods that decide are lock-free and do not allocate.
//
// Over any time t a Spread admits at most burst + rate * (t + 1ms), slightly more than a Limiter. A Spread is never
// stricter than a Limiter: before it refuses, it counts and takes the tokens that other processors hold. At rates below
// two tokens per millisecond and processor, processors hold no tokens, and a Spread is as exact as a Limiter.
//
// The policy is a [TokenBucket]. A Spread has no keys, tiers, reservations or waiting. It has a cell for each
// processor. The number of cells is GOMAXPROCS at NewSpread, rounded up to a power of two, and at most 128. If there
// are more processors later, some share a cell, which is slower, but the bound stays the same.
type Spread struct {
	bucket     *spread.Bucket
	clock      *clock
	maxDebt    uint64
	policyMu   sync.Mutex // SetPolicy locks it
	background *background
}

// NewSpread returns a Spread with a [TokenBucket] policy and a full bucket. The options can be [ClockPrecise],
// [ClockFunc] and [MaxDebt]. For all other options, NewSpread returns an error. If the burst or the largest debt would
// take hours to come back, the error names the range. A Spread takes 128 bytes for each processor.
//
// A Spread calibrates its clock in the background until Close, or until the garbage collector finds that the Spread was
// dropped.
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
	if err := c.checkSpread(); err != nil {
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
	s := &Spread{clock: clock, maxDebt: c.terms.maxDebt, background: &background{clock: clock, stop: make(chan struct{})}}
	terms, err := s.terms(policy, cells)
	if err != nil {
		return nil, err
	}
	s.bucket = spread.New(terms, clock.nanos)
	s.background.running.Go(s.background.calibrate)
	runtime.AddCleanup(s, (*background).halt, s.background)
	return s, nil
}

// checkSpread returns an error if an option was given that only applies to limiters with a table.
func (c *config) checkSpread() error {
	if c.maxKeys != DefaultMaxKeys || c.shards != 0 || c.overflow != 0 || c.stableHash || c.prefault || c.sharedPath != "" ||
		c.replacePolicy || c.interval != DefaultSweepInterval || len(c.tiers) > 0 || c.observer != nil || c.clock == clockCoarse ||
		c.terms.maxQuota != 0 || c.terms.refusals != ChargeNothing {
		return errors.New("engine: NewSpread: one bucket takes the options ClockPrecise, ClockFunc and MaxDebt, and no others")
	}
	return nil
}

// terms checks a policy and converts it to [spread.Terms], the numbers of a spread bucket.
func (s *Spread) terms(policy Policy, cells int) (*spread.Terms, error) {
	if policy.algorithm != AlgorithmTokenBucket || policy.grant != grantsLimit {
		return nil, fmt.Errorf("engine: %v: want engine.TokenBucket(rate, burst) for one bucket that is spread", policy)
	}
	if _, err := policy.build(policy.limit); err != nil {
		return nil, err
	}
	terms, err := s.termsOf(policy, policy.limit, cells)
	if err == nil {
		return terms, nil
	}
	var maxBurst uint64
	for bit := uint64(1) << 31; bit > 0; bit /= 2 {
		if _, err := s.termsOf(policy, maxBurst+bit, cells); err == nil {
			maxBurst += bit
		}
	}
	if maxBurst == 0 {
		return nil, fmt.Errorf("engine: %v: %w: want a higher rate, with which one token comes back within two hours", policy, err)
	}
	return nil, fmt.Errorf("engine: %v: %w: want a burst of at most %d", policy, err, maxBurst)
}

// termsOf converts a policy with the given burst, without a helpful error.
func (s *Spread) termsOf(policy Policy, burst uint64, cells int) (*spread.Terms, error) {
	policy.limit = burst
	algorithm, err := policy.build(burst)
	if err != nil {
		return nil, err
	}
	return spread.NewTerms(algorithm.(*atomicbucket.TokenBucket), cells, s.maxDebt, policy)
}

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

// Close stops the calibration of the clock. The limiter still decides as before. A second Close does nothing. The error
// is always nil; it exists for io.Closer.
func (s *Spread) Close() error {
	s.requireMade()
	s.background.halt()
	s.background.running.Wait()
	return nil
}

// requireMade panics if NewSpread did not make the limiter. Allow, Take and TakeReceipt do not call it.
func (s *Spread) requireMade() {
	if s == nil || s.bucket == nil {
		panic("engine: a Spread that is nil or zero: make it with engine.NewSpread, and look at NewSpread's error")
	}
}

// Allow takes one token and reports whether a token was available. It reads the clock only if the current processor
// holds no token.
func (s *Spread) Allow() bool {
	cell := procid.Pin()
	procid.Unpin()
	return s.bucket.Spend(cell) || s.bucket.Take(cell, 1).Admitted
}

// Take takes n tokens, all or none, and returns the decision. A refusal is exact, as with a Limiter. After an
// admission, Remaining and ResetAfter were right at some time in the last millisecond, and do not include tokens that
// other processors hold. A request for 0 tokens takes nothing and is always allowed. A request for more than the limit
// is never allowed ([Never]).
func (s *Spread) Take(n uint64) (d Decision) {
	if n == 0 {
		return s.Peek(0)
	}
	o := s.take(n)
	d.fill(&o, n)
	return d
}

func (s *Spread) take(n uint64) (o spread.Outcome) {
	cell := procid.Pin()
	procid.Unpin()
	if o = s.bucket.SpendAt(cell, n, s.clock.nanos()); !o.Admitted {
		o = s.bucket.Take(cell, n)
	}
	return o
}

// fill sets d to the decision for a request for n tokens. d must be zero before the call.
func (d *Decision) fill(o *spread.Outcome, n uint64) {
	limit := o.Terms.Quota.Tokens
	d.Allowed, d.Limit = o.Admitted, limit
	d.Remaining, d.ResetAfter = o.Left()
	switch {
	case n > limit:
		d.RetryAfter = Never
	case !o.Admitted:
		d.RetryAfter = o.Retry(n)
	}
}

// Peek returns the decision that Take(n) would return, and takes nothing. Remaining includes the tokens that all
// processors hold.
func (s *Spread) Peek(n uint64) (d Decision) {
	s.requireMade()
	o := s.bucket.Peek(n)
	d.fill(&o, n)
	return d
}

// Owed returns how many tokens were taken and have not come back yet, rounded up. It includes tokens above the burst,
// for example after [Spread.Charge], but not the tokens that processors hold.
func (s *Spread) Owed() uint64 {
	s.requireMade()
	return s.bucket.Owed()
}

// TakeReceipt is [Spread.Take] with a receipt for the tokens that it took. The receipt gives back only tokens that have
// not come back with time: the cost minus rate * the time since the take. After a change of the policy, it gives
// nothing back.
func (s *Spread) TakeReceipt(n uint64) (d Decision, r Receipt) {
	s.takeReceipt(&d, &r, n)
	return
}

// takeReceipt is TakeReceipt. d and r must be zero. It writes the receipt first, as [Limiter.takeReceipt] does.
func (s *Spread) takeReceipt(d *Decision, r *Receipt, n uint64) {
	if n == 0 {
		*d, r.spread = s.Peek(0), s // the receipt still charges a higher cost
		return
	}
	o := s.take(n)
	if o.Admitted {
		r.spread, r.terms, r.hash = s, o.Terms, uint64(o.Nanos)
		r.tableReceipt.EnterNone(n, shard.Quota{})
	}
	d.fill(&o, n)
}

// Charge takes n tokens, whether the bucket has them or not, for a cost that has already arisen. Tokens that processors
// hold count as owed. [MaxDebt] bounds the debt. By default, the bound is 10 times the limit, or 1 to 9 times if a
// higher bound does not fit into a word. The result lost is how many tokens were above the bound and were not charged.
func (s *Spread) Charge(n uint64) (lost uint64) {
	s.requireMade()
	charged, _ := s.bucket.Charge(n)
	return n - charged
}

// Reset makes the bucket full. Processors keep the tokens that they hold.
func (s *Spread) Reset() {
	s.requireMade()
	s.bucket.Reset()
}

// Policy returns the policy that NewSpread or the latest SetPolicy has set.
func (s *Spread) Policy() Policy {
	s.requireMade()
	return s.bucket.Terms().Source().(Policy)
}

// SetPolicy changes the numbers while the limiter is in use. Tokens that were taken still count, up to the [MaxDebt] of
// the new policy. After SetPolicy has returned, all decisions use the new numbers, and processors hold no more tokens
// than the new numbers allow. If SetPolicy returns an error, nothing has changed.
func (s *Spread) SetPolicy(policy Policy) error {
	s.requireMade()
	s.policyMu.Lock()
	defer s.policyMu.Unlock()
	terms, err := s.terms(policy, s.bucket.Cells())
	if err != nil {
		return err
	}
	s.bucket.Replace(terms)
	return nil
}
