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

func six(ns float64) []float64 {
	return []float64{ns * 0.998, ns * 0.999, ns, ns, ns * 1.001, ns * 1.002}
}

func TestRatioTargets(t *testing.T) {
	const row, coarse = "allowed-1k, 1 core", "coarse clock: at most 1.5 x its floor"
	const least = "coarse clock: at least 2.5 x faster than the do-it-yourself xsync word"
	run := func(floor, weir, word []float64) *result.Run {
		return &result.Run{Rows: []result.Row{{Name: "allowed-1k", Cores: 1, Entries: []result.Entry{
			entry(measure.FloorCoarse, floor...), entry(measure.WeirCoarse, weir...), entry(diy, word...)}}}}
	}
	for name, c := range map[string]struct {
		floor, weir, word []float64
		coarse, least     string
	}{
		"met":                       {six(10), six(14), six(40), Met, Met},
		"missed":                    {six(10), six(16), six(32), Missed, Missed},
		"on both sides":             {six(10), []float64{14, 14, 14, 14, 14, 16}, []float64{40, 40, 40, 40, 40, 30}, Undecided, Undecided},
		"met in the median, hardly": {six(10), six(15), six(37.5), Undecided, Undecided},
		"five rounds":               {six(10)[:5], six(14)[:5], six(40)[:5], Undecided, Undecided},
		"a round without a figure":  {six(10), six(14), append(six(40)[:5], 0), Met, Undecided},
	} {
		r := run(c.floor, c.weir, c.word)
		assert.Equal(t, c.coarse, lookFor(t, r, row, coarse).Verdict, name)
		assert.Equal(t, c.least, lookFor(t, r, row, least).Verdict, name)
	}
	got := lookFor(t, run(six(10), six(14), six(40)), row, coarse)
	assert.Equal(t, result.Target{Row: row, Target: coarse, Measured: "1.40", Spread: "1.40 - 1.40, 6 rounds", Verdict: Met}, got)
	got = lookFor(t, run(six(10), six(16), six(32)), row, coarse)
	assert.Equal(t, "weir, coarse clock takes 16.0 ns, floor, coarse clock 10.0 ns: about 1.0 ns too many", got.Why)
	got = lookFor(t, run(six(10), six(16), six(32)), row, least)
	assert.Equal(t, "2.00", got.Measured)
	assert.Equal(t, "diy GCRA, xsync map takes 32.0 ns, weir, coarse clock 16.0 ns: about 3.2 ns too many", got.Why)

	r := &result.Run{Rows: []result.Row{{Name: "churn", Cores: 1, Entries: []result.Entry{entry(measure.FloorTSC, six(10)...),
		{Name: measure.WeirTSC, Nanos: six(10), Error: "90 % of the decisions"}}}}}
	assert.Equal(t, Unmeasured, lookFor(t, r, "churn", "at most 2 x the floor").Verdict, "wrong decisions are no measurement")
}

// Every row with a floor has a target that compares weir with a floor.
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
		if !row.Batch && row.Draw != workload.Mixed { // these rows have no floor
			assert.Positive(t, targets[row.Name], row.Name)
		}
	}
}

func TestFasterThanEveryPeer(t *testing.T) {
	const text = "faster than every library that distinguishes keys"
	run := func(weir, near []float64) *result.Run {
		return &result.Run{
			Rows: []result.Row{{Name: "zipf-1m", Cores: 2, Entries: []result.Entry{entry(measure.WeirTSC, weir...),
				entry("near", near...), entry("far", six(90)...), entry("unkeyed", six(1)...),
				{Name: "broken", Nanos: six(1), Error: "97 %"}}}},
			Peers: []result.Peer{{Name: "near"}, {Name: "far"}, {Name: "broken"},
				{Name: "unkeyed", Cannot: map[peers.Ability]string{peers.Keys: "no"}}},
		}
	}
	got := lookFor(t, run(six(10), six(20)), "zipf-1m, 2 cores", text)
	assert.Equal(t, Met, got.Verdict, got.Why)
	assert.Equal(t, "2.00 (near)", got.Measured)
	assert.Equal(t, "2.00 - 2.00, 6 rounds, of 2", got.Spread)

	got = lookFor(t, run([]float64{10, 10, 10, 10, 10, 33}, six(13)), "zipf-1m, 2 cores", text)
	assert.Equal(t, Undecided, got.Verdict, "faster in the median, but by chance perhaps")
	assert.Equal(t, "near 1.30 times weir's time (0.39 - 1.30, 6 rounds)", got.Why)

	got = lookFor(t, run(six(20), six(10)), "zipf-1m, 2 cores", text)
	assert.Equal(t, Missed, got.Verdict)
	assert.Equal(t, "near 0.50 times weir's time (0.50 - 0.50, 6 rounds)", got.Why)

	got = lookFor(t, run([]float64{10, 11}, []float64{20, 21}), "zipf-1m, 2 cores", text)
	assert.Equal(t, Undecided, got.Verdict)
	assert.Contains(t, got.Why, "none by 2 rounds")
}

// The target for floods excludes peers whose memory grows.
func TestFlooded(t *testing.T) {
	run := func(cores int, bounded float64) *result.Run {
		return &result.Run{
			Rows: []result.Row{{Name: "flood", Cores: cores, Entries: []result.Entry{entry(measure.WeirTSC, six(10)...),
				entry("bounded", six(bounded)...), entry("grows", six(5)...)}}},
			Peers: []result.Peer{{Name: "bounded"}, {Name: "grows", Cannot: map[peers.Ability]string{peers.Bound: "it grows"}}},
		}
	}
	const one, two = "as fast as every library that bounds its memory, or faster", "twice as fast as every library that bounds its memory"
	assert.Equal(t, Met, lookFor(t, run(1, 11), "flood, 1 core", one).Verdict)
	assert.Equal(t, Missed, lookFor(t, run(1, 9), "flood, 1 core", one).Verdict)
	assert.Equal(t, Met, lookFor(t, run(2, 21), "flood, 2 cores", two).Verdict)
	assert.Equal(t, Missed, lookFor(t, run(2, 19), "flood, 2 cores", two).Verdict)
}

func TestReturning(t *testing.T) {
	run := func(back float64, found int) *result.Run {
		return &result.Run{Rows: []result.Row{{Name: "returning-1k", Cores: 1,
			Found:   &result.Found{Counted: experiment.Counted{Requests: 1000, Found: found}},
			Entries: []result.Entry{entry(measure.WeirTSC, six(back)...), entry(measure.WeirNeverIdle, six(100)...)}}}}
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
		entry(measure.WeirCoarse, six(10)...), entry("far", six(85)...), entry("near", six(55)...), entry("mine", six(20)...),
		entry("unkeyed", six(11)...),
	}}
	r := &result.Run{Rows: []result.Row{row}, Peers: []result.Peer{
		{Name: "far", Package: true}, {Name: "near", Package: true}, {Name: "mine"},
		{Name: "unkeyed", Package: true, Cannot: map[peers.Ability]string{peers.Keys: "no"}},
	}}
	const text = "coarse clock: at least 5 x faster than every published library with keys"
	got := lookFor(t, r, "allowed-1k, 1 core", text)
	assert.Equal(t, Met, got.Verdict)
	assert.Equal(t, "5.50 (near)", got.Measured, "neither the few lines of one's own nor what has no keys")

	row.Entries[2].Nanos = six(30)
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
