package spread

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTermsBeginBeforeTheyAreMet (U2, S7): new terms are published only after the time at which they begin was stored
// in them. Replace reads the clock for this time, and the clock of the test makes the check.
func TestTermsBeginBeforeTheyAreMet(t *testing.T) {
	var b *Bucket
	var coming *Terms
	now, asked := newTold(), 0
	b = New(terms(t, 100, 2000, 2), func() int64 {
		if coming != nil && coming.start.Load() == 0 {
			asked++
			for i := range b.terms {
				if b.terms[i].Load() == coming {
					t.Error("broken: U2: terms are met before they say when they begin")
				}
			}
		}
		return now.nanos.Load()
	})
	coming = terms(t, 7, 2000, 2)
	b.Replace(coming)
	require.Positive(t, asked)
}

// TestASpendingBesideManyChanges: a call spends tokens of a cell and is suspended, while the terms change up to six
// times within a millisecond. Its answer must follow terms that were active, although the slot of its own terms has
// other terms by now. A refund must give back what the call took, or nothing.
func TestASpendingBesideManyChanges(t *testing.T) {
	const burst = 2000
	for _, moves := range []int64{0, 1} { // how far the clock moves between the changes
		for changes := range 7 {
			for _, coming := range []bool{false, true} { // one more change is about to come
				now := newTold()
				b := New(terms(t, 100, burst, 2), now.nanos.Load)
				h, taken := &b.cells[0], uint64(1)
				for ; !cell(h.word.Load()).canSpend(1); taken++ { // until the cell draws tokens
					require.True(t, b.takes(0, 1))
				}
				c := cell(h.word.Load())
				nanos := now.nanos.Load()
				require.True(t, h.word.CompareAndSwap(uint64(c), uint64(c.spent(1))))
				next := func(i int) *Terms { return terms(t, []float64{7, 1000, 33}[i%3], burst, 2) }
				for i := range changes {
					now.nanos.Add(moves)
					b.Replace(next(i))
				}
				plan, last := state(b.shared.Load()).plan(), next(changes)
				if coming { // the beginning of Replace
					last.start.Store(now.nanos.Load())
					b.terms[(plan+1)&planMask].Store(last)
				}

				o := b.outcome(h, nanos, 0)
				assert.NotSame(t, last, o.Terms, "%d changes", changes)
				if tokens, _ := o.Left(); changes > 0 && max(tokens, burst-taken)-min(tokens, burst-taken) > 1 {
					t.Errorf("broken: U2: after %d changes, %d ns apart, a call is told of %d tokens: want %d", changes, moves, tokens, burst-taken)
				}

				if coming {
					b.Replace(last)
				}
				owed := b.Owed()
				b.Refund(1, o.Terms, o.Nanos)
				switch back := owed - b.Owed(); {
				case moves > 0 && (changes > 0 || coming && o.Terms == last):
					assert.Zero(t, back, "%d changes", changes)
				default:
					assert.LessOrEqual(t, back, uint64(1), "%d changes", changes)
				}
			}
		}
	}
}
