package target

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/result"
)

// These are the targets that are not a ratio of two times on a row.

// The function one returns a list with only the target t. If the target was measured, it has a verdict.
func one(t result.Target, measured, met bool, why string) []result.Target {
	t.Verdict = Unmeasured
	if measured {
		t.Verdict = verdict(met)
	}
	if t.Verdict == Missed {
		t.Why = why
	}
	return []result.Target{t}
}

// The constant nothing is the largest number of objects per call that still counts as no allocation. The number is not
// 0, because the runtime sometimes allocates.
const nothing = 0.001

func churnBytes(r *result.Run) []result.Target {
	t := result.Target{Row: "churn", Target: "0 bytes allocated for a new key"}
	worst, measured := 0.0, false
	for _, row := range r.Rows {
		if e, ok := row.Entry(measure.WeirTSC); ok && row.Name == "churn" && e.Error == "" {
			worst, measured = max(worst, e.Allocs), true
			t.Measured = fmt.Sprintf("%.1f bytes", e.Bytes)
		}
	}
	return one(t, measured, worst < nothing, fmt.Sprintf("%.3f objects a key", worst))
}

// deniedScaling returns the target for the speedup by more processors on a row of refusals. Refusals only read.
func deniedScaling(r *result.Run) []result.Target {
	t := result.Target{Row: denied,
		Target: "scales with the cores as the floor does, within a fifth: a refusal writes nothing"}
	first, ok := r.Row(denied, 1)
	last := first
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Name == denied && (last == nil || row.Cores > last.Cores) {
			last = row
		}
	}
	if !ok || last.Cores == 1 {
		return one(t, false, false, "")
	}
	weir, okWeir := speedup(first, last, measure.WeirCoarse)
	floor, okFloor := speedup(first, last, measure.FloorCoarse)
	if !okWeir || !okFloor {
		return one(t, false, false, "")
	}
	t.Measured = fmt.Sprintf("%.2f of the floor's", weir.Median/floor.Median)
	t.Spread = fmt.Sprintf("%.2f and %.2f times as many on %d cores, ±%.0f %%", weir.Median, floor.Median, last.Cores,
		100*(weir.Spread+floor.Spread))
	return one(t, true, weir.Median >= 0.8*floor.Median, "more cores bring weir less than they bring the floor")
}

// speedup returns a subject's decisions per second on the row last, divided by its decisions per second on the row
// first. The two rows have different numbers of processors.
func speedup(first, last *result.Row, name string) (result.Summary, bool) {
	a, okA := first.Entry(name)
	b, okB := last.Entry(name)
	if !okA || !okB || a.Error != "" || b.Error != "" {
		return result.Summary{}, false
	}
	s := result.Summarize(result.Ratios(a.Nanos, b.Nanos))
	return s, s.Rounds > 0
}

func memory(r *result.Run) []result.Target {
	t := result.Target{Row: "memory", Target: "at most 27 bytes a key at a million keys, fixed at New"}
	i := slices.IndexFunc(r.Memory, func(m result.Memory) bool { return m.Name == measure.WeirTSC && m.Error == "" })
	if i < 0 {
		return one(t, false, false, "")
	}
	m := r.Memory[i]
	keys := float64(m.Keys)
	declared, heap := float64(m.Declared)/keys, float64(m.Heap)/keys
	t.Measured = fmt.Sprintf("%.1f", declared)
	t.Spread = fmt.Sprintf("%.1f in RAM, whole pages; %.1f of it on the heap", float64(m.Resident)/keys, max(0, heap))
	return one(t, true, declared <= 27, "the table is larger")
}

func collection(r *result.Run) []result.Target {
	t := result.Target{Row: "gc", Target: "full collection with ten million keys within 2 ms of an empty process"}
	find := func(name string) (result.Collect, bool) {
		i := slices.IndexFunc(r.Collect,
			func(c result.Collect) bool { return c.Name == name && c.Error == "" && len(c.Nanos) > 0 })
		if i < 0 {
			return result.Collect{}, false
		}
		return r.Collect[i], true
	}
	weir, okWeir := find(measure.WeirTSC)
	empty, okEmpty := find(experiment.Empty)
	if !okWeir || !okEmpty {
		return one(t, false, false, "")
	}
	more := weir.Millis() - empty.Millis()
	t.Measured = fmt.Sprintf("%.2f ms more", more)
	t.Spread = fmt.Sprintf("%.2f ms, empty %.2f ms", weir.Millis(), empty.Millis())
	return one(t, true, more <= 2, "the collector finds something to follow")
}

// latency returns the targets for the slowest call and the 99.99th percentile of response times.
func latency(r *result.Run) (all []result.Target) {
	for _, beside := range []string{experiment.Sweep, experiment.Flood} {
		weir, okWeir := find(r, beside, false)
		empty, okEmpty := find(r, beside, true)
		for _, want := range []struct {
			percentile float64
			text       string
			limit      time.Duration
		}{
			{100, "worst call at most 1 ms", time.Millisecond},
			{99.99, "99.99 % of calls at most 20 µs", 20 * time.Microsecond},
		} {
			t := result.Target{Row: "latency, " + beside, Target: want.text}
			service, response, ok := weir.At(want.percentile)
			quiet, felt, okControl := empty.At(want.percentile)
			if !okWeir || !okEmpty || !ok || !okControl {
				all = append(all, one(t, false, false, "")...)
				continue
			}
			t.Measured = response.Round(100 * time.Nanosecond).String()
			t.Spread = fmt.Sprintf("the call itself %v; a call that does nothing %v, itself %v",
				service.Round(10*time.Nanosecond), felt.Round(100*time.Nanosecond), quiet.Round(10*time.Nanosecond))
			why := fmt.Sprintf("weir adds %v to what a call that does nothing takes on this machine beside the same work",
				(response - felt).Round(100*time.Nanosecond))
			if felt > want.limit {
				why = "a call that does nothing misses it on this machine too, beside the same work: " +
					"the scheduler takes the processor away"
			}
			all = append(all, one(t, true, response <= want.limit, why)...)
		}
	}
	return all
}

func find(r *result.Run, beside string, empty bool) (result.Latency, bool) {
	for _, l := range r.Latency {
		if l.Beside == beside && l.Empty == empty && l.Error == "" {
			return l, true
		}
	}
	return result.Latency{}, false
}

func allocations(r *result.Run) []result.Target {
	t := result.Target{Row: "allocations", Target: "none by Allow, Take, TakeKey, TakeBatch, Peek"}
	worst, name := 0.0, ""
	for _, c := range r.Calls {
		if c.Allocs >= worst {
			worst, name = c.Allocs, c.Name
		}
	}
	t.Measured = fmt.Sprintf("%.3f", worst)
	return one(t, len(r.Calls) > 0, worst < nothing, name+" allocates")
}
