package target

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/bench/workload"
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
	assert.Contains(t, counter.Why, `"floor, TSC clock" itself reaches 0.40`)

	least := lookFor(t, r, "allowed-1k, 1 core", "coarse clock: at least 2.5 x faster than the do-it-yourself xsync word")
	assert.Equal(t, Missed, least.Verdict)
	assert.Equal(t, "2.00", least.Measured)
	assert.Contains(t, least.Why, `about 5.6 ns too many; "floor, coarse clock" itself reaches 2.80`)

	assert.Equal(t, Unmeasured, lookFor(t, r, "churn", "at most 2 x the floor").Verdict,
		"wrong decisions are no measurement")
}

// A target that the floor itself misses is retired, and says so; one that weir meets all the same is not.
func TestTargetsOutOfReach(t *testing.T) {
	run := func(weir, floor, word float64) *result.Run {
		return &result.Run{Rows: []result.Row{{Name: "allowed-1k", Cores: 1, Entries: []result.Entry{
			entry(measure.FloorCoarse, floor), entry(measure.WeirCoarse, weir), entry(diy, word), entry("library", 2*word)}}},
			Peers: []result.Peer{{Name: "library", Package: true}}}
	}
	const row, text = "allowed-1k, 1 core", "coarse clock: at least 2.5 x faster than the do-it-yourself xsync word"
	got := lookFor(t, run(30, 25, 50), row, text)
	assert.Equal(t, Retired, got.Verdict)
	assert.Contains(t, got.Why, `"floor, coarse clock" itself reaches only 2.00, so no exact limiter can do it`)
	assert.Contains(t, got.Why, "instead: at most 1.5 x the floor with the same clock")
	assert.Equal(t, Missed, lookFor(t, run(30, 10, 50), row, text).Verdict, "the floor shows that it can be done")
	assert.Equal(t, Met, lookFor(t, run(20, 25, 50), row, text).Verdict)

	const published = "coarse clock: at least 5 x faster than every published library with keys"
	assert.Equal(t, Retired, lookFor(t, run(30, 25, 50), row, published).Verdict)
	assert.Equal(t, Missed, lookFor(t, run(30, 10, 50), row, published).Verdict)

	r := &result.Run{Rows: []result.Row{{Name: "hot", Cores: 2, Entries: []result.Entry{
		entry(measure.FloorHot, 10), entry(measure.FloorTSC, 13), entry(measure.WeirTSC, 15)}}}}
	assert.Equal(t, Retired, lookFor(t, r, "hot, 2 cores", "at most 1.2 x the contended compare-and-swap").Verdict)
	assert.Equal(t, Met, lookFor(t, r, "hot, 2 cores", "TSC clock: at most 1.5 x the floor with the same clock").Verdict)
}

// Every floor and clock of every row has one target.
func TestEveryRowHasItsFloor(t *testing.T) {
	targets := map[string]int{}
	for _, c := range ratios {
		if measure.IsFloor(c.b) {
			targets[c.row]++
		}
	}
	for _, x := range sameClock(&result.Run{}) {
		targets[x.Row]++
	}
	for _, row := range workload.Rows() {
		if !row.Batch {
			assert.Positive(t, targets[row.Name], row.Name)
		}
	}
}

func TestFasterThanEveryPeer(t *testing.T) {
	const text = "faster than every library that tells keys apart, p < 0.05"
	run := func(weir, near []float64) *result.Run {
		return &result.Run{
			Rows: []result.Row{{Name: "zipf-1m", Cores: 2, Entries: []result.Entry{entry(measure.WeirTSC, weir...),
				entry("near", near...), entry("far", 90, 91, 92, 93), entry("unkeyed", 1, 1, 1, 1),
				{Name: "broken", Nanos: []float64{1, 1, 1, 1}, Error: "97 %"}}}},
			Peers: []result.Peer{{Name: "near"}, {Name: "far"}, {Name: "broken"},
				{Name: "unkeyed", Cannot: map[peers.Ability]string{peers.Keys: "no"}}},
		}
	}
	got := lookFor(t, run([]float64{10, 11, 12, 13}, []float64{20, 21, 22, 0, 23}), "zipf-1m, 2 cores", text)
	assert.Equal(t, Met, got.Verdict, got.Why)
	assert.Equal(t, "1.87 (near)", got.Measured)
	assert.Equal(t, "of 2, p at most 0.014", got.Spread, "1 / (8 choose 4)")

	got = lookFor(t, run([]float64{10, 11, 12, 33}, []float64{13, 14, 15, 16}), "zipf-1m, 2 cores", text)
	assert.Equal(t, Missed, got.Verdict, "faster in the median, but by chance perhaps")
	assert.Contains(t, got.Why, "near 1.26 times weir's time (p = 0.")

	got = lookFor(t, run([]float64{20, 21, 22, 23}, []float64{10, 11, 12, 13}), "zipf-1m, 2 cores", text)
	assert.Equal(t, Missed, got.Verdict)
	assert.Equal(t, "near 0.53 times weir's time (p = 1)", got.Why)

	got = lookFor(t, run([]float64{10, 11}, []float64{20, 21}), "zipf-1m, 2 cores", text)
	assert.Equal(t, Unmeasured, got.Verdict)
	assert.Equal(t, "so few rounds cannot tell a difference from chance", got.Why)
}

func TestReturning(t *testing.T) {
	run := func(back float64, found int) *result.Run {
		return &result.Run{Rows: []result.Row{{Name: "returning-1k", Cores: 1,
			Found:   &result.Found{Counted: experiment.Counted{Requests: 1000, Found: found}},
			Entries: []result.Entry{entry(measure.WeirTSC, back), entry(measure.WeirNeverIdle, 100)}}}}
	}
	const ratio, hits = "at most 1.1 x the same keys, never idle", "99 % of requests find the record of their key"
	assert.Equal(t, Met, lookFor(t, run(109, 990), "returning-1k, 1 core", ratio).Verdict)
	assert.Equal(t, Missed, lookFor(t, run(111, 990), "returning-1k, 1 core", ratio).Verdict)
	assert.Equal(t, Met, lookFor(t, run(109, 990), "returning-1k", hits).Verdict)
	got := lookFor(t, run(109, 989), "returning-1k", hits)
	assert.Equal(t, Missed, got.Verdict)
	assert.Equal(t, "98.90 %", got.Measured)
	assert.Equal(t, Unmeasured, lookFor(t, run(109, 990), "returning-1m/zipf", ratio).Verdict)
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
