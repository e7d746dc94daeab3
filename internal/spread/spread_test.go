//go:build !explore

package spread

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestTheLawOverTime: in every interval of length t, at most burst + rate * (t + τ) tokens are admitted. The calls are
// random and come one after the other, with a load of a tenth of the rate to ten times the rate. At each refusal, an
// exact bucket that has admitted the same requests would refuse, too.
func TestTheLawOverTime(t *testing.T) {
	const cells, burst, tick = 4, 300, 10_000 // nanoseconds of a token
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		now := newTold()
		b := New(terms(t, 100, burst, cells), now.nanos.Load)
		require.EqualValues(t, 25, b.Terms().Share())
		full := now.nanos.Load() // of the exact bucket
		load := 0.1 + r.Float64()*r.Float64()*10
		admitted, refused, drawn := 0, 0, 0
		for range 20_000 {
			if r.IntN(2000) == 0 {
				now.nanos.Add(int64(time.Duration(r.IntN(20)) * time.Millisecond))
			}
			n := uint64(1)
			if r.IntN(10) == 0 {
				n += r.Uint64N(20)
			}
			now.nanos.Add(int64(r.ExpFloat64() * tick * float64(n) / load))
			at := now.nanos.Load()
			cell := min(r.IntN(cells), r.IntN(cells))
			if n == 1 && b.Spend(cell) || b.SpendAt(cell, n, at).Admitted {
				drawn++
			} else if !b.Take(cell, n).Admitted {
				require.Greater(t, max(full-at, 0)+int64(n*tick), int64(burst*tick), "U3: seed %d", seed)
				refused++
				continue
			}
			admitted++
			full = max(full, at) + int64(n*tick)
			require.LessOrEqual(t, full-at, int64(burst*tick)+int64(Ahead), "U1: seed %d", seed)
		}
		assert.NotZero(t, admitted)
		assert.NotZero(t, drawn)
		if load > 2 {
			assert.NotZero(t, refused)
		}
	}
}

// TestNoFewerThanAnExactBucketInAnyTime: between any two moments, the bucket admits at least as many requests for one
// token as an independent exact bucket, minus one. This must be true even if the bucket has admitted more than the
// exact bucket before the first moment.
func TestNoFewerThanAnExactBucketInAnyTime(t *testing.T) {
	const cells, burst, tick = 4, 300, 10_000 // nanoseconds of a token
	for seed := range uint64(15) {
		r := rand.New(rand.NewPCG(seed, 3))
		now := newTold()
		b := New(terms(t, 100, burst, cells), now.nanos.Load)
		full := now.nanos.Load() // of the exact bucket
		load := 0.5 + r.Float64()*r.Float64()*5
		lead, most, ahead := 0, 0, 0 // how many more requests the bucket has admitted
		for i := range 30_000 {
			if r.IntN(2000) == 0 {
				now.nanos.Add(int64(time.Duration(r.IntN(20)) * time.Millisecond))
			}
			if i/1000%2 == 0 { // the phases are long enough for the bucket to fill while cells hold tokens
				now.nanos.Add(int64(r.ExpFloat64() * tick / load))
			} else {
				now.nanos.Add(int64(r.ExpFloat64() * tick * 1.5))
			}
			at := now.nanos.Load()
			if b.takes(min(r.IntN(cells), r.IntN(cells)), 1) {
				lead++
			}
			if max(full-at, 0)+tick <= burst*tick {
				full = max(full, at) + tick
				lead--
			}
			most, ahead = max(most, lead), max(ahead, lead)
			require.GreaterOrEqual(t, lead, most-1, "seed %d", seed)
		}
		if load > 2 {
			assert.Greater(t, ahead, 10, "seed %d", seed)
		}
	}
}

// TestStressRefusalsAreLinearizable: while the clock stands still, many goroutines get exactly the burst together (U2).
// After a refusal, no request that begins later is admitted (U3).
func TestStressRefusalsAreLinearizable(t *testing.T) {
	for _, n := range []uint64{1, 3} {
		const burst, cells = 30_000, 4
		for range 20 {
			now := newTold()
			b := New(terms(t, 4000, burst, cells), now.nanos.Load)
			var empty atomic.Bool
			var admitted atomic.Uint64
			var all sync.WaitGroup
			for g := range 8 {
				all.Go(func() {
					own := uint64(0)
					for {
						late := empty.Load()
						if !b.takes(g, n) {
							empty.Store(true)
							break
						}
						own += n
						if late {
							t.Error("U3: admitted behind a refusal")
						}
						if own%1024 < n {
							runtime.Gosched()
						}
					}
					admitted.Add(own)
				})
			}
			all.Wait()
			assert.EqualValues(t, burst/n*n, admitted.Load())
		}
	}
}

// TestStressNothingIsLost: goroutines take, charge and peek while the terms change. When the tokens in all cells are
// returned at the end, the debt of the bucket equals the tokens that were admitted and charged.
func TestStressNothingIsLost(t *testing.T) {
	const burst, cells = 1 << 20, 4
	now := newTold()
	b := New(terms(t, 4000, burst, cells), now.nanos.Load)
	var balance atomic.Int64
	stop := make(chan struct{})
	var changes, all sync.WaitGroup
	changes.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				b.Replace(terms(t, float64(4000/(1+i%2)), burst, cells))
			}
		}
	})
	for g := range 6 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 2))
			for range 30_000 {
				n := 1 + r.Uint64N(3)
				switch r.IntN(20) {
				case 0:
					charged, _ := b.Charge(n)
					balance.Add(int64(charged))
				case 1:
					b.Peek(n)
				default:
					if b.takes(g, n) {
						balance.Add(int64(n))
					}
				}
			}
		})
	}
	all.Wait()
	close(stop)
	changes.Wait()
	b.drain()
	v := b.look()
	assert.EqualValues(t, balance.Load(), v.owed/v.terms.Quota.Token)
}

// TestAnIdleBucketStaysFull: S9. A bucket that was idle for any length of time is full. A bucket that was used a moment
// ago is not.
func TestAnIdleBucketStaysFull(t *testing.T) {
	now := newTold()
	b := New(terms(t, 1000, 10, 2), now.nanos.Load)
	quarter := b.Terms().quarter
	for i := range int64(64) {
		for range 10 {
			require.True(t, b.takes(0, 1), "after %d sixteenths of the circle", i)
		}
		require.False(t, b.takes(0, 1))
		now.nanos.Add(quarter/4*i + 1_000_000)
	}
	now.nanos.Add(-1_000_000 - quarter/4*63)
	for i := range 64 { // each step is so short that the word changedAt is not always written
		now.nanos.Add(quarter / 5)
		for range 10 {
			require.True(t, b.takes(0, 1), "after %d steps", i)
		}
		require.False(t, b.takes(0, 1))
	}
}

// TestAnIdleBucketSaysThatItIsFull: S9. After any idle time, an admission by a cell that holds tokens reports that the
// bucket is full.
func TestAnIdleBucketSaysThatItIsFull(t *testing.T) {
	for i := range int64(64) {
		now := newTold()
		b := New(terms(t, 1000, 1000, 2), now.nanos.Load)
		for range 6 {
			require.True(t, b.takes(0, 1))
		}
		now.nanos.Add(b.Terms().quarter/4*i + 1_000_000)
		for range 2 { // first from the shared word, then from the note about it
			o := b.SpendAt(0, 1, now.nanos.Load())
			require.True(t, o.Admitted, "after %d sixteenths of the circle", i)
			left, _ := o.Left()
			require.EqualValues(t, 1000, left, "after %d sixteenths of the circle", i)
		}
		require.EqualValues(t, 0, b.Owed())
	}
}

// TestUsage: S8. The tokens that a cell has used count for at most τ. A call of another processor that takes tokens
// from the cell sets the count to 0.
func TestUsage(t *testing.T) {
	now := newTold()
	b := New(terms(t, 1000, 1000, 2), now.nanos.Load)
	h := &b.cells[0]
	for range 7 {
		require.True(t, b.takes(0, 1))
	}
	assert.EqualValues(t, 8, h.usage(now.nanos.Load()), "1 + 1 + 2 + 4")
	assert.EqualValues(t, 8, h.usage(now.nanos.Load()+int64(Ahead)-3000))
	assert.Zero(t, h.usage(now.nanos.Load()+int64(Ahead)))
	require.True(t, b.Take(1, 996-7).Admitted)
	assert.EqualValues(t, 8, h.usage(now.nanos.Load()))
	require.True(t, b.takes(1, 4), "three in the bucket, and one in the cell")
	assert.Zero(t, h.usage(now.nanos.Load()))

	b = New(terms(t, 1000, 1000, 2), now.nanos.Load)
	for range 7 {
		require.True(t, b.takes(0, 1))
	}
	require.True(t, b.Take(1, 992).Admitted)
	require.NotZero(t, b.cells[0].usage(now.nanos.Load()))
	require.True(t, b.takes(1, 1), "spent in the other cell")
	assert.Zero(t, b.cells[0].usage(now.nanos.Load()))

	b = New(terms(t, 1000, 1<<26, 2), now.nanos.Load)
	for range 3 {
		require.True(t, b.Take(0, 1<<24).Admitted)
	}
	assert.EqualValues(t, tokenMask, b.cells[0].usage(now.nanos.Load()), "no more than there is room for")
}

// TestMoreThanTheLimit: a peek or a take for more tokens than the limit is refused, even if a cell holds tokens while
// the bucket is full again.
func TestMoreThanTheLimit(t *testing.T) {
	now := newTold()
	b := New(terms(t, 1000, 100, 2), now.nanos.Load)
	for range 6 {
		require.True(t, b.takes(0, 1))
	}
	now.nanos.Add(int64(Ahead))
	require.True(t, b.Peek(100).Admitted)
	for _, n := range []uint64{101, 1 << 40, 1 << 63} {
		assert.False(t, b.Peek(n).Admitted)
		assert.False(t, b.Take(0, n).Admitted)
	}
	require.NotZero(t, cell(b.cells[0].word.Load()).tokens())
}

// TestWhatAnOutcomeSays: the outcome of an admitted request describes a state of the bucket that is at most τ old.
func TestWhatAnOutcomeSays(t *testing.T) {
	now := newTold()
	b := New(terms(t, 1000, 1000, 2), now.nanos.Load)
	left := func(o Outcome) uint64 {
		require.True(t, o.Admitted)
		tokens, _ := o.Left()
		return tokens
	}
	assert.EqualValues(t, 999, left(b.Take(0, 1)))
	assert.EqualValues(t, 998, left(b.Take(0, 1)))
	assert.EqualValues(t, 997, left(b.Take(0, 1)), "drawn, and the other one counted")
	assert.EqualValues(t, 996, left(b.SpendAt(0, 1, now.nanos.Load())))
	assert.EqualValues(t, 995, left(b.Take(0, 1)), "three more")
	b.Charge(900)
	assert.EqualValues(t, 994, left(b.SpendAt(0, 1, now.nanos.Load())), "as it was when it drew")
	now.nanos.Add(int64(Ahead) + 1)
	assert.EqualValues(t, 1000, left(b.SpendAt(0, 1, now.nanos.Load())), "all has come back")
	assert.False(t, b.SpendAt(1, 1, now.nanos.Load()).Admitted)

	b = New(terms(t, 1000, 10_000, 2), now.nanos.Load)
	for range 5 {
		b.takes(0, 1)
	}
	b.Charge(9000)
	now.nanos.Add(int64(Ahead) + 1000)
	assert.EqualValues(t, 10_000-9007+1001+1, left(b.SpendAt(0, 1, now.nanos.Load())), "seven were drawn, of which one is there")
}

// TestACallThatStopped: S3, S4. If a call stops after it has begun a step, the next request of the cell completes this
// step.
func TestACallThatStopped(t *testing.T) {
	now := newTold()
	b := New(terms(t, 1000, 1000, 2), now.nanos.Load)
	w := &b.cells[0].word
	w.Store(uint64(cell(0).begun(drawing, 100)))
	require.True(t, b.takes(0, 1))
	assert.Equal(t, cell(0).begun(drawing, 100).emptied(), cell(w.Load()), "it was never charged")
	assert.EqualValues(t, 1, b.Owed())

	b.Charge(100)
	w.Store(uint64(cell(0).begun(returning, 100)))
	require.True(t, b.takes(0, 1))
	assert.Equal(t, cell(0).begun(returning, 100).emptied(), cell(w.Load()), "it was charged and is given back")
	assert.EqualValues(t, 2, b.Owed())
}

// TestRefundsByTheTime: S10. A refund whose time is before the request gives back its complete cost. A refund that
// comes late gives nothing back.
func TestRefundsByTheTime(t *testing.T) {
	now := newTold()
	b := New(terms(t, 1000, 1000, 2), now.nanos.Load)
	b.Charge(100)
	o := b.Take(0, 10)
	b.Refund(10, o.Terms, o.Nanos+5000)
	assert.EqualValues(t, 100, b.Owed())
	for passed := range int64(25) {
		b = New(terms(t, 1000, 1000, 2), now.nanos.Load)
		b.Charge(100)
		o = b.Take(0, 10)
		now.nanos.Add(passed * 1000)
		b.Refund(10, o.Terms, o.Nanos)
		assert.EqualValues(t, 110-max(10, passed), b.Owed(), "%d tokens' time later", passed)
	}
}

// TestReplaceBoundsTheDebt: after a change of the terms, a bucket owes as many tokens as before, but no more than the
// bound of the new terms.
func TestReplaceBoundsTheDebt(t *testing.T) {
	now := newTold()
	b := New(terms(t, 1000, 1000, 2), now.nanos.Load)
	charged, _ := b.Charge(1 << 20)
	require.EqualValues(t, 10_000, charged)
	b.Replace(terms(t, 1000, 2000, 2))
	assert.EqualValues(t, 10_000, b.Owed())
	b.Replace(terms(t, 1000, 300, 2))
	assert.EqualValues(t, 3000, b.Owed())
}

func TestTermsOutOfRange(t *testing.T) {
	slow, err := atomicbucket.NewTokenBucket(1, time.Minute, 1000)
	require.NoError(t, err)
	_, err = NewTerms(&slow, 2, 0, nil)
	assert.EqualError(t, err, "a burst of 1000 tokens, and a debt of 1 times as many, take longer to come back than a word has room for")
	fast, err := atomicbucket.NewTokenBucket(1e9, time.Second, 1<<32)
	require.NoError(t, err)
	made, err := NewTerms(&fast, 1, 0, nil)
	require.NoError(t, err)
	assert.EqualValues(t, 1_000_000, made.Share())
}

func TestCellsShareNoLine(t *testing.T) {
	assert.EqualValues(t, 128, unsafe.Sizeof(holder{}))
}

// TestAReceiptOfTermsThatAreYounger (S10): a call spends a cell's tokens under fast terms, and reads the slow terms
// that replace them. Its refund must give nothing back, because its tokens have already come back at the faster rate.
func TestAReceiptOfTermsThatAreYounger(t *testing.T) {
	fast, slow := terms(t, 1000, 1000, 2), terms(t, 0.02, 1000, 2)
	now := int64(time.Second)
	b := New(fast, func() int64 { return now })
	for range 3 {
		b.Take(0, 20) // the cell draws
	}
	h := &b.cells[0]
	c := cell(h.word.Load())
	require.True(t, c.canSpend(20))
	now += 2 * int64(Ahead)
	nanos := now
	require.True(t, h.word.CompareAndSwap(uint64(c), uint64(c.spent(20)))) // as SpendAt does, then it is suspended
	now += int64(500 * time.Millisecond)
	b.Replace(slow)
	require.True(t, b.Take(0, 1000).Admitted)
	o := b.outcome(h, nanos, c.tokens()-20) // SpendAt continues
	b.Refund(20, o.Terms, o.Nanos)
	assert.False(t, b.Take(0, 2).Admitted, "above the burst")
}
