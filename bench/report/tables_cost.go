package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/bench/result"
)

func parts(r *result.Run) table {
	t := table{
		Title: "What a floor is made of, 1,000 keys, GOMAXPROCS 1",
		Note:  "Each includes the loop, whose time stands alone in the first line.",
		Head:  []string{"", "ns", "range"},
	}
	for _, e := range r.Parts {
		s := result.Summarize(result.Ratios(e.Nanos, slices.Repeat([]float64{1}, len(e.Nanos))))
		switch {
		case e.Cannot != "":
			t.add(e.Name, "cannot", e.Cannot)
		case e.Error != "":
			t.add(e.Name, "failed", e.Error)
		default:
			t.add(e.Name, fmt.Sprintf("%.1f", s.Median), fmt.Sprintf("%.1f - %.1f", s.Min, s.Max))
		}
	}
	return t
}

func pages(r *result.Run) table {
	t := table{
		Title: "A random compare-and-swap by the size of the table and of its pages",
		Head:  []string{"table", "pages", "ns", "range", ""},
	}
	for _, x := range r.Tables {
		kind := "small"
		if x.Huge {
			kind = "huge"
		}
		s := result.Summarize(result.Ratios(x.Nanos, slices.Repeat([]float64{1}, len(x.Nanos))))
		t.add(fmt.Sprintf("%d MiB", x.Bytes>>20), kind, fmt.Sprintf("%.1f", s.Median),
			fmt.Sprintf("%.1f - %.1f", s.Min, s.Max), x.Note)
	}
	return t
}

func memory(r *result.Run) table {
	t := table{
		Title: "Memory with a million keys in use",
		Note: "Without the keys' own text, unless a limiter copies it. " +
			"In RAM is what the process holds more after a collection, whole pages.",
		Head: []string{"", "bytes a key", "in RAM, MB", "of the heap, MB", "by its own account, MB"},
	}
	memories := slices.Clone(r.Memory)
	slices.SortStableFunc(memories, func(a, b result.Memory) int { return cmp.Compare(a.PerKey(), b.PerKey()) })
	for _, m := range memories {
		if m.Error != "" {
			t.add(m.Name, "failed", m.Error)
			continue
		}
		declared := ""
		if m.Declared > 0 {
			declared = fmt.Sprintf("%.1f", float64(m.Declared)/1e6)
		}
		t.add(m.Name, fmt.Sprintf("%.1f", m.PerKey()), fmt.Sprintf("%.1f", float64(m.Resident)/1e6),
			fmt.Sprintf("%.1f", float64(m.Heap)/1e6), declared)
	}
	return t
}

// touched returns a table of the memory of a limiter for a million keys with requests for only a few.
func touched(r *result.Run) table {
	t := table{
		Title: "Memory that is touched: a limiter for a million keys that few have asked",
		Note: "Huge is as the system gives huge pages to a program that asks for them, as weir does: each that is touched " +
			"is 2 MiB. Small is the same in a process that gets none.",
		Head: []string{"pages", "keys", "in RAM, MB", "of the heap, MB", "mapped, MB"},
	}
	for _, x := range r.Touched {
		kind := "small"
		if x.Huge {
			kind = "huge"
		}
		if x.Error != "" {
			t.add(kind, "failed", x.Error)
			continue
		}
		t.add(kind, fmt.Sprint(x.Keys), fmt.Sprintf("%.2f", float64(x.Resident)/1e6),
			fmt.Sprintf("%.2f", float64(x.Heap)/1e6), fmt.Sprintf("%.1f", float64(x.Declared)/1e6))
	}
	return t
}

func collections(r *result.Run) table {
	t := table{Title: "A full garbage collection with ten million keys", Head: []string{"", "ms", "fastest", "slowest"}}
	for _, c := range r.Collect {
		if c.Error != "" || len(c.Nanos) == 0 {
			t.add(c.Name, "failed", c.Error)
			continue
		}
		t.add(c.Name, fmt.Sprintf("%.2f", c.Millis()), fmt.Sprintf("%.2f", float64(slices.Min(c.Nanos))/1e6),
			fmt.Sprintf("%.2f", float64(slices.Max(c.Nanos))/1e6))
	}
	return t
}

// callName returns the name of a measurement of latency, for the reports.
func callName(l result.Latency) string {
	if l.Empty {
		return "a call that does nothing, beside " + l.Beside
	}
	return "Allow, beside " + l.Beside
}

func latencies(r *result.Run) table {
	t := table{
		Title: "Latency of a single call, a million keys",
		Note: "Calls are due every 5 µs. Felt is from when a call was due to its end, " +
			"so that calls that wait behind a late one count with their wait (no coordinated omission); " +
			"the call is from its beginning. What the call that does nothing shows is the machine and the scheduler.",
		Head: []string{"", "50 %", "99 %", "99.9 %", "99.99 %", "worst", "the call: 99.99 %", "worst"},
	}
	short := func(d time.Duration) string { return d.Round(10 * time.Nanosecond).String() }
	for _, l := range r.Latency {
		if l.Error != "" {
			t.add(callName(l), "failed", l.Error)
			continue
		}
		cells := []string{callName(l)}
		for _, p := range []float64{50, 99, 99.9, 99.99, 100} {
			_, felt, _ := l.At(p)
			cells = append(cells, short(felt))
		}
		for _, p := range []float64{99.99, 100} {
			call, _, _ := l.At(p)
			cells = append(cells, short(call))
		}
		t.add(cells...)
	}
	return t
}
