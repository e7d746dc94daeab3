package engine

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testrace"
)

// TestAlignedWindowsWhoseLengthChanges (I1): if the length changes often, a key gets at most two limits and what its
// fastest limit grants.
func TestAlignedWindowsWhoseLengthChanges(t *testing.T) {
	testrace.OneGoroutine(t)
	type grant struct {
		at    time.Duration
		n     uint64
		under int // the index of the policy that granted it
	}
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 51))
		lengths := [][]time.Duration{{60, 61}, {60, 10}, {60, 59, 61}, {7, 30, 12, 5}}[random.IntN(4)]
		draw := func() Policy { // with even seeds, all policies have about the same rate
			length, limit := lengths[random.IntN(len(lengths))], 1+random.Uint64N(9)
			if seed%2 == 0 {
				limit = uint64(length+9) / 10
			}
			return FixedWindow(limit, length*time.Second).Aligned()
		}
		p := draw()
		l, h := newLimiter(t, p)
		k, began, policies := l.Key("k"), h.now(), []Policy{p}
		var grants []grant
		story := fmt.Sprint(p)
		takes := func() {
			n := l.Peek(k, 0).Remaining
			if n > 0 && random.IntN(4) == 0 {
				n = 1 + random.Uint64N(n)
			}
			if n > 0 && l.TakeKey(k, n).Allowed {
				grants = append(grants, grant{h.now().Sub(began), n, len(policies) - 1})
				story += fmt.Sprintf("\n%v: takes %d, window ends in %v", h.now().Sub(began), n, l.Peek(k, 0).ResetAfter)
			}
		}
		for range 60 {
			switch random.IntN(5) {
			case 0:
				if random.IntN(2) == 0 {
					takes()
				}
				p = draw()
				require.NoError(t, l.SetPolicy(p))
				policies = append(policies, p)
				story += fmt.Sprintf("\n%v: %v", h.now().Sub(began), p)
			case 1:
				takes()
			case 2: // move the clock to the next window, or to the end of the key's window, or a nanosecond less
				rest := p.window - time.Duration(h.now().UnixNano()%int64(p.window))
				if ends := l.Peek(k, 0).ResetAfter; ends > 0 && random.IntN(2) == 0 {
					rest = ends
				}
				h.advance(rest - time.Duration(random.IntN(2)))
			case 3:
				h.advance(time.Duration(random.IntN(30)) * time.Second)
			case 4:
				l.Sweep()
			}
		}
		for i, first := range grants {
			sum := uint64(0)
			for _, last := range grants[i:] {
				sum += last.n
				limit, rate := uint64(0), 0.0
				for _, p := range policies[first.under : last.under+1] {
					limit, rate = max(limit, p.limit), max(rate, float64(p.limit)/p.window.Seconds())
				}
				most := float64(2*limit) + rate*(last.at-first.at).Seconds() + 1e-6
				require.LessOrEqual(t, float64(sum), most, "broken: (b): seed %d: from %v to %v\n%s", seed, first.at, last.at, story)
			}
		}
	}
}

// TestAFirstWindowBeforeADateThatAZoneSkipped (I1): if windows become days just before a date that the zone skipped,
// the first day ends after that date.
func TestAFirstWindowBeforeADateThatAZoneSkipped(t *testing.T) {
	apia, err := time.LoadLocation("Pacific/Apia")
	require.NoError(t, err)
	const length = 17*time.Hour + 18*time.Minute + 49*time.Second
	midnight := time.Date(2011, time.December, 31, 0, 0, 0, 0, apia)
	end := time.Unix(0, midnight.UnixNano()/int64(length)*int64(length))
	require.Less(t, midnight.Sub(end), 3*time.Second)
	h := new(hand)
	h.advance(end.Add(-1).Sub(h.now()))
	l, err := New(FixedWindow(10, length).Aligned(), ClockFunc(h.now), MaxKeys(10))
	require.NoError(t, err)
	defer l.Close()
	sum := requireAll(t, l, l.Key("k"))
	h.advance(1)
	require.NoError(t, l.SetPolicy(CalendarWindow(10, Day, apia)))
	sum += requireAll(t, l, l.Key("k"))
	h.advance(midnight.Sub(end))
	require.LessOrEqual(t, sum+requireAll(t, l, l.Key("k")), uint64(20), "broken: (b): in %v", midnight.Sub(end))
}

// TestALateTakeInAFirstWindowThatWasGivenBack (I1): takes by a late clock fit the limits, after the tokens of a first
// window were given back.
func TestALateTakeInAFirstWindowThatWasGivenBack(t *testing.T) {
	k := newChangingKey(t, false)
	k.takesAt(0)
	k.passes(1)
	k.changes()
	d, r := k.takes.TakeReceipt(k.takes.KeyUint64(1), changingLimit)
	require.True(t, d.Allowed)
	k.passes(2)
	require.True(t, r.Release())
	k.clock.advance(-time.Second)
	for _, at := range []int{1, 2, 62, 63} {
		k.takesAt(at)
	}
	k.requireFits("a late take")
}

// TestAChangeOfTheLimitLeavesAlignedWindows: a change of the limit makes no window longer.
func TestAChangeOfTheLimitLeavesAlignedWindows(t *testing.T) {
	l, h := newLimiter(t, FixedWindow(5, time.Minute).Aligned())
	require.NoError(t, l.SetPolicy(FixedWindow(9, time.Minute).Aligned()))
	require.Equal(t, 40*time.Second, l.Take("a", 1).ResetAfter, "broken: (c): when the window ends")
	require.NoError(t, l.SetPolicy(FixedWindow(9, 30*time.Second).Aligned()))
	require.NoError(t, l.SetPolicy(FixedWindow(5, 30*time.Second).Aligned()))
	require.Equal(t, 40*time.Second, l.Take("b", 1).ResetAfter)
	h.advance(40 * time.Second)
	require.Equal(t, 30*time.Second, l.Take("b", 1).ResetAfter, "broken: (c): when the window ends")
}

// TestAWaitWhileAlignedWindowsGoToAndFro: while the length changes back and forth, a key waits at most the longest
// window plus two windows.
func TestAWaitWhileAlignedWindowsGoToAndFro(t *testing.T) {
	for _, lengths := range [][]time.Duration{{61, 60}, {90, 60}, {144, 168}} {
		p := FixedWindow(10, lengths[1]*time.Minute).Aligned()
		l, h := newLimiter(t, p)
		_, err := l.Quota(p)
		require.NoError(t, err)
		both := lengths[0] * lengths[1] * time.Minute // a window of either length begins then
		h.advance(both - time.Duration(h.now().UnixNano()%int64(both)))
		requireAll(t, l, l.Key("k"))
		for i := range 40 {
			h.advance(time.Second)
			p = FixedWindow(10, lengths[i%2]*time.Minute).Aligned()
			require.NoError(t, l.SetPolicy(p))
			wait := l.TakeKey(l.Key("k"), 1).RetryAfter
			require.LessOrEqual(t, wait, slices.Max(lengths)*time.Minute+2*p.window, "broken: (c): %v, change %d", p, i)
		}
	}
}

// TestDaysOfAnotherZone (I1): days of another zone are as long as before, but tokens of the previous day may be
// forgotten.
func TestDaysOfAnotherZone(t *testing.T) {
	later := time.FixedZone("ten seconds later", -10)
	l, h := newLimiter(t, CalendarWindow(10, Day, nil))
	passes := func(at time.Duration) {
		h.advance(time.Unix(1_700_006_400, 0).Add(at).Sub(h.now()))
	}
	passes(-1)
	sum := requireAll(t, l, l.Key("k"))
	passes(time.Second)
	l.Sweep()
	require.NoError(t, l.SetPolicy(CalendarWindow(10, Day, later)))
	sum += requireAll(t, l, l.Key("k"))
	passes(10 * time.Second)
	require.LessOrEqual(t, sum+requireAll(t, l, l.Key("k")), uint64(20), "broken: (b): in ten seconds")
}

// A changingKey takes all that it can while the length of aligned windows changes from 60s to 61s.
type changingKey struct {
	t       *testing.T
	sets    *Limiter // its process changes the policy
	takes   *Limiter // the key takes in its process; the same as sets if no file is shared
	path    string   // of the file that both share, or empty
	options []Option
	clock   *hand
	began   time.Time
	grants  []time.Duration
}

const changingLimit = 10

func newChangingKey(t *testing.T, shared bool) *changingKey {
	const start = 464481*60*61 + 59
	k := &changingKey{t: t, clock: &hand{}}
	k.clock.advance(time.Unix(start, 0).Sub(k.clock.now()))
	k.began = k.clock.now()
	k.options = []Option{ClockFunc(k.clock.now), MaxKeys(10), Shards(1), SweepInterval(24 * time.Hour)}
	if !shared {
		k.sets = k.made(60*time.Second, k.options...)
		k.takes = k.sets
		return k
	}
	k.path = filepath.Join(t.TempDir(), "table")
	options := append(k.options[:len(k.options):len(k.options)], Shared(k.path))
	k.sets, k.takes = k.made(60*time.Second, options...), k.made(60*time.Second, options...)
	return k
}

func (k *changingKey) made(window time.Duration, options ...Option) *Limiter {
	l, err := New(FixedWindow(changingLimit, window).Aligned(), options...)
	require.NoError(k.t, err)
	k.t.Cleanup(func() { _ = l.Close() })
	return l
}

func (k *changingKey) changes() {
	require.NoError(k.t, k.sets.SetPolicy(FixedWindow(changingLimit, 61*time.Second).Aligned()))
}

func (k *changingKey) passes(second int) {
	k.clock.advance(max(0, time.Duration(second)*time.Second-k.clock.now().Sub(k.began)))
}

// takesAt moves the clock to the given second after the start, and takes single tokens until the key is refused.
func (k *changingKey) takesAt(second int) {
	k.passes(second)
	for k.takes.AllowKey(k.takes.KeyUint64(1)) {
		k.grants = append(k.grants, k.clock.now().Sub(k.began))
	}
}

// requireFits checks that over any time the key got at most two limits and what the faster of the two rates grants.
func (k *changingKey) requireFits(what string) {
	for i, first := range k.grants {
		for j, last := range k.grants[i:] {
			require.LessOrEqual(k.t, float64(j+1), 2*changingLimit+changingLimit*(last-first).Seconds()/60,
				"broken: (b): %s: from %v to %v: %v", what, first, last, k.grants)
		}
	}
}
