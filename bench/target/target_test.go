package target

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/result"
)

func entry(name string, ns ...float64) result.Entry { return result.Entry{Name: name, Nanos: ns} }

// find returns the target of that row and text.
func lookFor(t *testing.T, r *result.Run, row, text string) result.Target {
	for _, x := range Evaluate(r) {
		if x.Row == row && x.Target == text {
			return x
		}
	}
	t.Fatalf("no target %q on %q in %+v", text, row, Evaluate(r))
	return result.Target{}
}

func TestNothingMeasured(t *testing.T) {
	targets := Evaluate(&result.Run{})
	assert.NotEmpty(t, targets)
	for _, x := range targets {
		assert.Equal(t, Unmeasured, x.Verdict, "%+v", x)
		assert.Empty(t, x.Why)
	}
}

func TestRatioTargets(t *testing.T) {
	r := &result.Run{Rows: []result.Row{
		{Name: "allowed-1k", Cores: 1, Entries: []result.Entry{
			entry(measure.FloorCoarse, 10, 20, 10), entry(measure.WeirCoarse, 14, 28, 30),
			entry(measure.FloorPrecise, 50, 50, 50), entry(measure.FloorTSC, 20, 20, 20), entry(measure.WeirTSC, 35, 30, 40),
			entry(diy, 28, 56, 60),
		}},
		{Name: "allowed-1k", Cores: 2,
			Entries: []result.Entry{entry(measure.FloorCoarse, 10), entry(measure.WeirCoarse, 16)}},
		{Name: "churn", Cores: 1, Entries: []result.Entry{entry(measure.FloorTSC, 10),
			{Name: measure.WeirTSC, Nanos: []float64{0}, Error: "90 % of the decisions"}}},
	}}
	const coarse = "coarse clock: at most 1.5 x its floor"
	met := lookFor(t, r, "allowed-1k, 1 core", coarse)
	assert.Equal(t, result.Target{
		Row: "allowed-1k, 1 core", Target: coarse, Measured: "1.40", Spread: "1.40 - 3.00, ±0 %", Verdict: Met,
	}, met)

	missed := lookFor(t, r, "allowed-1k, 2 cores", coarse)
	assert.Equal(t, Missed, missed.Verdict)
	assert.Equal(t, "weir, coarse clock takes 16.0 ns, floor, coarse clock 10.0 ns: about 1.0 ns too many", missed.Why)

	counter := lookFor(t, r, "allowed-1k, 1 core", "TSC clock: at most 0.6 x the floor of the precise clock")
	assert.Equal(t, Missed, counter.Verdict)
	assert.Contains(t, counter.Why, "the floor with the bare counter is itself 0.40 of the floor")

	least := lookFor(t, r, "allowed-1k, 1 core", "coarse clock: at least 2.5 x faster than the do-it-yourself xsync word")
	assert.Equal(t, Missed, least.Verdict)
	assert.Equal(t, "2.00", least.Measured)
	assert.Contains(t, least.Why, "about 5.6 ns too many")

	assert.Equal(t, Unmeasured, lookFor(t, r, "churn", "at most 2 x the floor").Verdict,
		"wrong decisions are no measurement")
}

func TestPublished(t *testing.T) {
	row := result.Row{Name: "allowed-1k", Cores: 1, Entries: []result.Entry{
		entry(measure.WeirCoarse, 10, 10), entry("far", 80, 90), entry("near", 60, 50), entry("mine", 20, 20),
		entry("unkeyed", 11, 11),
	}}
	r := &result.Run{Rows: []result.Row{row}, Peers: []result.Peer{
		{Name: "far", Package: true}, {Name: "near", Package: true}, {Name: "mine"},
		{Name: "unkeyed", Package: true, Cannot: map[peers.Ability]string{peers.Keys: "no"}},
	}}
	const text = "coarse clock: at least 5 x faster than every published library with keys"
	got := lookFor(t, r, "allowed-1k, 1 core", text)
	assert.Equal(t, Met, got.Verdict)
	assert.Equal(t, "5.50 (near)", got.Measured, "neither the few lines of one's own nor what has no keys")

	row.Entries[2].Nanos = []float64{30, 30}
	got = lookFor(t, r, "allowed-1k, 1 core", text)
	assert.Equal(t, Missed, got.Verdict)
	assert.Equal(t, "nearer than that: near 3.00", got.Why)
}

func TestDeniedScaling(t *testing.T) {
	rows := func(weir2 float64) *result.Run {
		return &result.Run{Rows: []result.Row{
			{Name: denied, Cores: 1, Entries: []result.Entry{entry(measure.FloorCoarse, 10), entry(measure.WeirCoarse, 20)}},
			{Name: denied, Cores: 2, Entries: []result.Entry{entry(measure.FloorCoarse, 5), entry(measure.WeirCoarse, weir2)}},
		}}
	}
	assert.Equal(t, Met, deniedScaling(rows(11))[0].Verdict)
	assert.Equal(t, Missed, deniedScaling(rows(20))[0].Verdict)
	assert.Equal(t, Unmeasured, deniedScaling(&result.Run{Rows: rows(1).Rows[:1]})[0].Verdict, "one core shows nothing")
}

func TestMemoryCollectionAllocations(t *testing.T) {
	held := func(declared int64) *result.Run {
		return &result.Run{Memory: []result.Memory{{Name: measure.WeirTSC,
			Held: experiment.Held{Keys: 1_000_000, Declared: declared, Resident: 28e6, Heap: 1e6}}}}
	}
	assert.Equal(t, Met, memory(held(26_700_000))[0].Verdict)
	assert.Equal(t, Missed, memory(held(40_000_000))[0].Verdict)

	collected := func(nanos int64) *result.Run {
		return &result.Run{Collect: []result.Collect{{Name: experiment.Empty, Nanos: []int64{200_000}},
			{Name: measure.WeirTSC, Nanos: []int64{nanos}}}}
	}
	assert.Equal(t, Met, collection(collected(2_100_000))[0].Verdict)
	assert.Equal(t, Missed, collection(collected(2_300_000))[0].Verdict)

	calls := &result.Run{Calls: []experiment.Allocated{{Name: "Allow"}, {Name: "Take"}}}
	assert.Equal(t, Met, allocations(calls)[0].Verdict)
	calls.Calls[1].Allocs = 1
	got := allocations(calls)[0]
	assert.Equal(t, Missed, got.Verdict)
	assert.Equal(t, "Take allocates", got.Why)

	churn := &result.Run{Rows: []result.Row{{Name: "churn",
		Entries: []result.Entry{{Name: measure.WeirTSC, Nanos: []float64{5}, Allocs: 1, Bytes: 64}}}}}
	assert.Equal(t, Missed, churnBytes(churn)[0].Verdict)
}

func TestLatency(t *testing.T) {
	delays := func(all int64) experiment.Delays {
		d := experiment.Delays{}
		for range experiment.Percentiles {
			d.Service, d.Response = append(d.Service, all), append(d.Response, all)
		}
		return d
	}
	run := func(weir, empty int64) *result.Run {
		return &result.Run{Latency: []result.Latency{
			{Beside: experiment.Sweep, Delays: delays(weir)},
			{Beside: experiment.Sweep, Empty: true, Delays: delays(empty)},
		}}
	}
	verdicts := func(r *result.Run) (v []string) {
		for _, x := range latency(r) {
			v = append(v, x.Verdict)
		}
		return v
	}
	assert.Equal(t, []string{Met, Met, Unmeasured, Unmeasured}, verdicts(run(15_000, 100)))
	assert.Equal(t, []string{Met, Missed, Unmeasured, Unmeasured}, verdicts(run(500_000, 100)))
	assert.Equal(t, "weir adds 499.9µs to what a call that does nothing takes on this machine beside the same work",
		latency(run(500_000, 100))[1].Why)
	assert.Contains(t, latency(run(5_000_000, 4_000_000))[0].Why, "a call that does nothing misses it on this machine too")
}
