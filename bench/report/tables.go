package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/bench/target"
	"github.com/weir-go/weir/bench/workload"
)

func headline(r *result.Run) string {
	m := r.Machine
	parts := []string{m.CPU, fmt.Sprintf("%d cores", m.Cores), m.System}
	if m.Kernel != "" {
		parts = append(parts, "kernel "+m.Kernel)
	}
	if m.Load != "" {
		parts = append(parts, "load "+m.Load)
	}
	if _, commit, ok := strings.Cut(m.Weir, " "); ok {
		parts = append(parts, "commit "+commit[:min(12, len(commit))])
	}
	return strings.Join(append(parts, m.Go, fmt.Sprintf("%d rounds in %v", r.Rounds, r.Took), r.Started.Format(time.DateOnly)), ", ")
}

// tables returns everything that was measured.
func tables(r *result.Run) []table {
	all := append(glance(r), targets(r))
	for i := range r.Rows {
		if !isVariant(&r.Rows[i]) {
			all = append(all, row(&r.Rows[i], r.Peers))
		}
	}
	return append(all, returning(r), parts(r), pages(r), memory(r), touched(r), collections(r), latencies(r), bounded(r),
		absent(r))
}

// glance is what a stranger looks for first: weir beside what he uses, on the rows that people have, a table for each
// number of processors.
func glance(r *result.Run) (all []table) {
	for i := range r.Rows {
		cores := r.Rows[i].Cores
		title := "At a glance, " + plural(cores, "core")
		if shown(&r.Rows[i]) && !slices.ContainsFunc(all, func(t table) bool { return t.Title == title }) {
			all = append(all, glanceOn(r, cores, title))
		}
	}
	slices.SortFunc(all, func(a, b table) int { return cmp.Compare(a.Title, b.Title) })
	return all
}

func glanceOn(r *result.Run, cores int, title string) table {
	t := table{
		Title: title,
		Note: fmt.Sprintf("Nanoseconds of a decision, and in brackets times weir's Allow, of middleware times httplimit: the "+
			"median of the ratios of %d rounds, and its interval of 95 %%. On several cores a time is that of the clock on the "+
			"wall, for all together.", r.Rounds),
		Head: []string{plural(cores, "core")},
	}
	subjects := append([]string{measure.WeirTSC, measure.WeirTake}, atGlance...)
	lines := make([]line, len(subjects))
	for i, name := range subjects {
		lines[i].Cells = []string{name}
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if !shown(row) || row.Cores != cores {
			continue
		}
		t.Head = append(t.Head, row.Name)
		for j, name := range subjects {
			lines[j].Cells = append(lines[j].Cells, besideWeir(row, name, r.Rounds))
		}
	}
	for _, l := range lines {
		if slices.ContainsFunc(l.Cells[1:], func(cell string) bool { return cell != "" }) {
			t.Rows = append(t.Rows, l)
		}
	}
	return t
}

// besideWeir writes the time of a subject, and its ratio to weir's, with its rounds if the run had others.
func besideWeir(row *result.Row, name string, rounds int) string {
	base := measure.WeirTSC
	if strings.HasSuffix(name, "middleware") {
		base = measure.WeirHandler
	}
	s, ok := row.Ratio(name, base)
	if !ok {
		return ""
	}
	e, _ := row.Entry(name)
	if name == base {
		return fmt.Sprintf("%.1f", e.Median())
	}
	return fmt.Sprintf("%.1f (%.2f: %s)", e.Median(), s.Median,
		strings.TrimSuffix(target.Interval(s), fmt.Sprintf(", %d rounds", rounds)))
}

// atGlance are the libraries of that table.
var atGlance = []string{"diy GCRA, xsync map", "sethvargo/go-limiter", "tailscale util/limiter", "x/time/rate, xsync map",
	"throttled, LRU", measure.WeirHandler, "httprate, middleware", "tollbooth, middleware", "echo, middleware"}

func targets(r *result.Run) table {
	t := table{Title: "Targets", Head: []string{"", "row", "target", "measured", "95 %"}}
	for _, x := range r.Targets {
		l := line{Cells: []string{x.Verdict, x.Row, x.Target, x.Measured, x.Spread}, Class: x.Verdict}
		if x.Why != "" {
			l.Under = []string{x.Why}
		}
		t.Rows = append(t.Rows, l)
	}
	return t
}

func row(r *result.Row, known []result.Peer) table {
	t := table{
		Title: fmt.Sprintf("%s (%s), GOMAXPROCS %d", r.Title, r.Name, r.Cores),
		Head:  []string{"", "ns", "x floor", "95 %", "spread", "allocs", "bytes", "compared with"},
	}
	entries := slices.Clone(r.Entries)
	slices.SortStableFunc(entries, func(a, b result.Entry) int { return cmp.Compare(order(&a), order(&b)) })
	for _, e := range entries {
		switch {
		case e.Cannot != "":
			t.add(e.Name, "cannot", e.Cannot)
		case e.Error != "":
			t.add(e.Name, "failed", e.Error)
		default:
			s, ok := r.Ratio(e.Name, e.Floor)
			cells := []string{e.Name, fmt.Sprintf("%.1f", e.Median()), "", "", "", "", "", ""}
			if ok {
				cells[2], cells[3], cells[4] = fmt.Sprintf("%.2f", s.Median), target.Interval(s), percent(s)
			}
			cells[5], cells[6], cells[7] = count(e.Allocs), count(e.Bytes), e.Floor
			t.add(cells...)
		}
	}
	var notes []string
	if found := foundText(r); found != "" {
		notes = append(notes, "Requests that find the record of their key in weir's table: "+found+".")
	}
	t.Note = strings.Join(append(notes, sameClock(r)+without(r, known)), " ")
	return t
}

// sameClock compares weir with the do-it-yourself word by the clock that both read.
func sameClock(r *result.Row) string {
	var all []string
	for _, c := range []struct{ clock, weir, word string }{
		{"the counter", measure.WeirTSC, peers.DIYCounter}, {"Go's clock", measure.WeirPrecise, "diy GCRA, xsync map"},
	} {
		if s, ok := r.Ratio(c.weir, c.word); ok {
			weir, _ := r.Entry(c.weir)
			word, _ := r.Entry(c.word)
			all = append(all, fmt.Sprintf("%s: weir %.1f ns, the do-it-yourself word %.1f ns, %.2f times (%s)",
				c.clock, weir.Median(), word.Median(), s.Median, target.Interval(s)))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "Same clock. By " + strings.Join(all, ". By ") + ". "
}

// without names the libraries that are not in a row's table, with the reason.
func without(r *result.Row, known []result.Peer) string {
	found, err := workload.Find(r.Name)
	if err != nil {
		return ""
	}
	reasons, order := map[string][]string{}, []string{}
	for _, p := range known {
		if _, ok := r.Entry(p.Name); ok {
			continue
		}
		why := cmp.Or(measure.Cannot(&found, p.Name), "no time for it in this run")
		if reasons[why] == nil {
			order = append(order, why)
		}
		reasons[why] = append(reasons[why], p.Name)
	}
	if len(order) == 0 {
		return ""
	}
	for i, why := range order {
		order[i] = why + ": " + strings.Join(reasons[why], ", ")
	}
	return "Without " + strings.Join(order, "; ") + "."
}

// isVariant reports whether a row is a variant of another: variants have one table together.
func isVariant(r *result.Row) bool {
	found, err := workload.Find(r.Name)
	return err == nil && found.Differences() > 0
}

// returning is the rows of keys that come back, and their variants, beside the same keys that are never idle.
func returning(r *result.Run) table {
	t := table{
		Title: "Keys that come back idle, beside the same keys that never are",
		Note: "Both take turns in one process. Found is how many requests found the record of their key, in time in which " +
			"sweeps come at their default interval and every key about once a second.",
		Head: []string{"row", "cores", "ns", "never idle, ns", "x never idle", "95 %", "spread", "found"},
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		back, ok := row.Entry(measure.WeirTSC)
		never, also := row.Entry(measure.WeirNeverIdle)
		if !ok || !also {
			continue
		}
		s, ok := row.Ratio(back.Name, never.Name)
		if !ok {
			t.add(row.Name, fmt.Sprint(row.Cores), "failed", cmp.Or(back.Error, never.Error))
			continue
		}
		t.add(row.Name, fmt.Sprint(row.Cores), fmt.Sprintf("%.1f", back.Median()), fmt.Sprintf("%.1f", never.Median()),
			fmt.Sprintf("%.2f", s.Median), target.Interval(s), percent(s), foundText(row))
	}
	return t
}

// foundText writes how many requests found their record.
func foundText(r *result.Row) string {
	switch {
	case r.Found == nil:
		return ""
	case r.Found.Error != "":
		return "failed: " + r.Found.Error
	}
	return fmt.Sprintf("%.2f %%", 100*r.Found.Fraction())
}

// order sorts entries: the fastest first, those without a time last.
func order(e *result.Entry) float64 {
	switch {
	case e.Cannot != "":
		return 1e19
	case e.Error != "":
		return 1e18
	}
	return e.Median()
}

func percent(s result.Summary) string { return fmt.Sprintf("±%.0f %%", 100*s.Spread) }

// count writes what a decision allocates. The few objects a second that the runtime allocates count as none.
func count(n float64) string {
	if n < 0.05 {
		return "0"
	}
	return fmt.Sprintf("%.3g", n)
}

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
	all := slices.Clone(r.Memory)
	slices.SortStableFunc(all, func(a, b result.Memory) int { return cmp.Compare(a.PerKey(), b.PerKey()) })
	for _, m := range all {
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

// touched is what a program pays that has a limiter for a million keys and a few of them.
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

// callName names a measurement of latency.
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

// bounded lists the libraries, with the abilities that they lack.
func bounded(r *result.Run) table {
	t := table{Title: "Libraries", Head: []string{"", "version"}}
	for _, p := range r.Peers {
		var cannot []string
		for ability, why := range p.Cannot {
			cannot = append(cannot, fmt.Sprintf("cannot %s: %s", abilities[string(ability)], why))
		}
		slices.Sort(cannot)
		t.Rows = append(t.Rows, line{Cells: []string{p.Name, p.Version}, Under: append([]string{p.How}, cannot...)})
	}
	return t
}

var abilities = map[string]string{
	"keys": "tell keys apart", "refuse": "refuse at once",
	"bound": "bound its memory", "cost": "take n tokens, all or none",
}

func absent(r *result.Run) table {
	t := table{Title: "Not measured", Head: []string{"", "because"}}
	for _, a := range r.Absent {
		t.add(a.Name, a.Reason)
	}
	return t
}

// percentileLabel writes a percentile.
func percentileLabel(i int) string { return fmt.Sprintf("%g %%", experiment.Percentiles[i]) }
