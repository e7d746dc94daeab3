package fuzz

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/reference"
)

// An entrant is a request that has taken tokens in flight, with what the model knows about the request.
type entrant struct {
	key    string
	n      uint64
	period int64 // the period in which it entered
	entry  engine.Receipt
	out    bool // it has left, or was forgotten by a reset
}

// A doorman lets requests in and out of a limiter, one after the other, and compares every answer with the key's model.
type doorman struct {
	limiter  *engine.Limiter
	clock    *hand
	models   map[string]*reference.Concurrency
	limit    uint64
	longest  time.Duration
	entrants []*entrant
	taken    uint64 // tokens that entered
	back     uint64 // tokens that were given back in time
	late     uint64 // tokens that were given back too late: they count as forgotten
	reset    uint64 // tokens that a reset forgot
	calls    map[string]int
}

func newDoorman(t *rapid.T) *doorman {
	d := &doorman{
		clock: new(hand), models: map[string]*reference.Concurrency{}, limit: 4, calls: map[string]int{},
		longest: rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, time.Hour, 8760 * time.Hour}).Draw(t, "longest"),
	}
	d.clock.nanos.Store(noon)
	var err error
	d.limiter, err = engine.New(engine.Concurrency(d.limit, d.longest), engine.MaxKeys(19), engine.Shards(1),
		engine.ClockFunc(d.clock.now), engine.SweepInterval(24*time.Hour))
	require.NoError(t, err)
	for _, key := range clients {
		d.models[key] = reference.NewConcurrency(d.limit, d.longest)
	}
	return d
}

func (d *doorman) now() int64 { return d.clock.nanos.Load() }

func (d *doorman) peek(t *rapid.T, key string) {
	m, got := d.models[key], d.limiter.Peek(d.limiter.Key(key), 1)
	require.Equal(t, m.Remaining(d.now()), got.Remaining, "I2: %s", key)
	require.Equal(t, time.Duration(m.RetryAfter(d.now(), 1)), got.RetryAfter, "I2: %s", key)
	require.Equal(t, time.Duration(m.ResetAfter(d.now())), got.ResetAfter, "I2: %s", key)
}

func (d *doorman) enter(t *rapid.T, key string) {
	n := rapid.Uint64Range(1, d.limit).Draw(t, "n")
	e := &entrant{key: key, n: n}
	var got engine.Decision
	got, e.entry = d.limiter.TakeReceipt(d.limiter.Key(key), n)
	m := d.models[key]
	require.Equal(t, m.Take(d.now(), n), got.Allowed, "I1: %d of %s", n, key)
	if !got.Allowed {
		d.calls["refused"]++
		return
	}
	e.period = m.Period()
	d.taken += n
	d.entrants = append(d.entrants, e)
	d.calls["entered"]++
}

func (d *doorman) release(t *rapid.T) {
	if len(d.entrants) == 0 {
		return
	}
	e := d.entrants[rapid.IntRange(0, len(d.entrants)-1).Draw(t, "which")]
	e.entry.Release()
	if e.out {
		d.calls["released twice"]++
		return
	}
	e.out = true
	m := d.models[e.key]
	before := m.InFlight(d.now())
	m.Leave(e.period, e.n)
	if left := before - m.InFlight(d.now()); left == 0 {
		d.late += e.n
		d.calls["released too late"]++
	} else {
		require.Equal(t, e.n, left)
		d.back += e.n
		d.calls["released"]++
	}
}

func (d *doorman) forget(key string) {
	d.limiter.Reset(d.limiter.Key(key))
	d.models[key].Reset()
	for _, e := range d.entrants {
		if e.key == key && !e.out {
			e.out, d.reset = true, d.reset+e.n
		}
	}
	d.calls["reset"]++
}

// TestEntriesAgainstTheirModel (I1, I2, I7): requests enter and leave in any order, twice or too late. Meanwhile limits
// change and keys are reset. Tokens in flight agree with the model, and every token leaves, is reset, or is forgotten
// and counted.
func TestEntriesAgainstTheirModel(t *testing.T) {
	total := map[string]int{}
	times := 30
	if testing.Short() {
		times = 4
	}
	for range times {
		rapid.Check(t, func(t *rapid.T) {
			d := newDoorman(t)
			defer d.limiter.Close()
			d.run(t)
			for what, n := range d.calls {
				total[what] += n
			}
		})
	}
	t.Logf("%v", total)
	for _, what := range []string{"entered", "refused", "released", "released twice", "released too late", "reset", "set policy", "swept"} {
		assert.Positive(t, total[what], what)
	}
}

func (d *doorman) run(t *rapid.T) {
	client := rapid.SampledFrom(clients[:3])
	resets := false // after a reset it is unknown which entries of the key were already forgotten
	t.Repeat(map[string]func(*rapid.T){
		"enter":    func(t *rapid.T) { d.enter(t, client.Draw(t, "key")) },
		"enter2":   func(t *rapid.T) { d.enter(t, client.Draw(t, "key")) },
		"release":  d.release,
		"release2": d.release,
		"peek":     func(t *rapid.T) { d.peek(t, client.Draw(t, "key")) },
		"reset": func(t *rapid.T) {
			if rapid.IntRange(0, 4).Draw(t, "really") == 0 {
				resets = true
				d.forget(client.Draw(t, "key"))
			}
		},
		"sweep": func(*rapid.T) { d.limiter.Sweep(); d.calls["swept"]++ },
		"set policy": func(t *rapid.T) {
			d.limit = rapid.Uint64Range(1, 9).Draw(t, "limit")
			require.NoError(t, d.limiter.SetPolicy(engine.Concurrency(d.limit, d.longest)))
			for key, m := range d.models {
				d.models[key] = m.Change(d.limit)
			}
			d.calls["set policy"]++
		},
		"advance": func(t *rapid.T) {
			longest := int64(d.longest)
			wait := rapid.SampledFrom([]int64{0, 1, longest / 3, longest - d.now()%longest - 1, longest - d.now()%longest, longest, 2 * longest}).Draw(t, "wait")
			if d.now()+wait < 8e18 {
				d.clock.nanos.Store(d.now() + wait)
			}
		},
	})
	for _, key := range clients {
		d.peek(t, key)
	}
	if resets || d.now()+3*int64(d.longest) > 8e18 {
		return
	}
	d.clock.nanos.Store(d.now() + 3*int64(d.longest))
	d.limiter.Sweep()
	require.Zero(t, d.limiter.Stats().Keys, "I7")
	forgotten := d.limiter.Stats().Forgotten
	require.LessOrEqual(t, forgotten, d.taken-d.back, "I2: what entered and never left is counted")
	require.GreaterOrEqual(t, forgotten, d.taken-d.back-d.late, "I2: what entered and never left is counted")
}

// FuzzEntries does the same as TestEntriesAgainstTheirModel, but the fuzzer chooses the calls.
func FuzzEntries(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		d := newDoorman(t)
		defer d.limiter.Close()
		d.run(t)
	}))
}
