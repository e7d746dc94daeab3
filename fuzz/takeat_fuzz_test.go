package fuzz

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weir-go/weir/engine"
)

// A tape is the input from a fuzzer. It is read from the front. After the end of the tape, reads return zeros.
type tape []byte

func (b *tape) take(n int) []byte {
	out := make([]byte, n)
	*b = (*b)[copy(out, *b):]
	return out
}

func (b *tape) byte() byte   { return b.take(1)[0] }
func (b *tape) int64() int64 { return int64(binary.LittleEndian.Uint64(b.take(8))) }

// FuzzTakeAt (I1, I2, I3, I7, I8): calls in any order, at any times, with any cost. The first byte chooses the policy.
// Each call has a byte for its kind and key, a byte for its cost, and a time. A time has a byte for its kind, and
// further bytes that depend on the kind.
func FuzzTakeAt(f *testing.F) {
	all := slices.Concat(whole, broken, rounded)
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, data []byte) {
		b := tape(data)
		p := all[int(b.byte())%len(all)]
		w := newWitness(t, p, false, engine.Evict)
		defer w.limiter.Close()
		keys := []string{"", "a", "b", "c"}
		for calls := 0; len(b) > 0 && calls < 200; calls++ {
			what := b.byte()
			key := keys[what&3]
			n := uint64(b.byte())
			if n == math.MaxUint8 {
				n = math.MaxUint64
			}
			at := drawTime(&b, w)
			switch what >> 2 & 7 {
			default:
				w.takeAt(t, key, n, at)
			case 3:
				w.clock.set(timeline(at))
				w.take(t, key, n)
			case 4:
				w.clock.set(timeline(at))
				w.peek(t, key, n)
			case 5:
				w.clock.set(timeline(at))
				w.sweep(t)
			case 6:
				w.reset(key)
			case 7:
				w.clock.set(timeline(at))
				w.allow(t, key)
			}
			w.stats(t)
		}
	})
}

// drawTime reads a time from the tape, of a kind that the first byte chooses.
func drawTime(b *tape, w *witness) time.Time {
	token := max(int64(float64(w.numbers.period)/w.numbers.tokens), 1)
	switch b.byte() % 8 {
	case 0: // the latest so far, give or take some nanoseconds
		return time.Unix(0, after(max(w.seen-128, 0), int64(b.byte())))
	case 1: // some tokens later
		return time.Unix(0, after(w.seen, token*min(int64(b.byte()), math.MaxInt64/token)))
	case 2: // some tokens earlier
		return time.Unix(0, max(w.seen-token*min(int64(b.byte()), math.MaxInt64/token), 0))
	case 3: // eighths of a token
		return time.Unix(0, after(w.seen, token/8*int64(b.byte())))
	case 4: // a leap
		return time.Unix(0, after(w.seen, 1<<(b.byte()&63)&math.MaxInt64))
	case 5: // any nanosecond of the timeline, or a little before it
		return time.Unix(0, b.int64())
	case 6: // any second that time.Unix accepts
		return time.Unix(b.int64(), int64(b.byte()))
	}
	return time.Time{}
}
