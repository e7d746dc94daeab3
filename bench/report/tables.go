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

func tables(r *result.Run) []table {
	list := append(glance(r), targets(r))
	for i := range r.Rows {
		if !isVariant(&r.Rows[i]) {
			list = append(list, row(&r.Rows[i], r.Peers))
		}
	}
	return append(list, costs(r)...)
}

// costs returns the tables of the libraries, and of all measurements other than rows.
func costs(r *result.Run) []table {
	return []table{returning(r), parts(r), pages(r), memory(r), touched(r), collections(r), latencies(r), libraries(r), notMeasured(r)}
}

// glance returns the tables that a new reader looks for first: weir next to widely used libraries, on common workloads.
func glance(r *result.Run) (list []table) {
	for i := range r.Rows {
		cores := r.Rows[i].Cores
		title := "At a glance, " + plural(cores, "core")
		if isShown(&r.Rows[i]) && !slices.ContainsFunc(list, func(t table) bool { return t.Title == title }) {
			list = append(list, glanceTable(r, cores, title))
		}
	}
	slices.SortFunc(list, func(a, b table) int { return cmp.Compare(a.Title, b.Title) })
	return list
}

func glanceTable(r *result.Run, cores int, title string) table {
	t := table{
		Title: title,
		Note: fmt.Sprintf("Nanoseconds of a decision, and in brackets times weir's Allow, of middleware times httplimit: the "+
			"median of the ratios of %d rounds, and its interval of 95 %%. On several cores a time is that of the clock on the "+
			"wall, for all together.", r.Rounds),
		Head: []string{plural(cores, "core")},
	}
	weir := measure.WeirPrecise
	if slices.ContainsFunc(r.Rows, func(row result.Row) bool { return weirOf(&row) == measure.WeirTSC }) {
		weir = measure.WeirTSC
	}
	subjects := append([]string{weir, measure.WeirTake}, glanceSubjects...)
	lines := make([]line, len(subjects))
	for i, name := range subjects {
		lines[i].Cells = []string{name}
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if !isShown(row) || row.Cores != cores {
			continue
		}
		t.Head = append(t.Head, row.Name)
		for j, name := range subjects {
			lines[j].Cells = append(lines[j].Cells, relativeToWeir(row, name, r.Rounds))
		}
	}
	for _, l := range lines {
		if slices.ContainsFunc(l.Cells[1:], func(cell string) bool { return cell != "" }) {
			t.Rows = append(t.Rows, l)
		}
	}
	return t
}

// relativeToWeir writes a subject's time and its ratio to weir's time. The argument rounds is the usual number of
// rounds. If the subject has another number of rounds, relativeToWeir also writes this number.
func relativeToWeir(row *result.Row, name string, rounds int) string {
	base := weirOf(row)
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

var glanceSubjects = []string{"diy GCRA, xsync map", "sethvargo/go-limiter", "tailscale util/limiter", "x/time/rate, xsync map",
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

func row(r *result.Row, peerList []result.Peer) table {
	t := table{
		Title: fmt.Sprintf("%s (%s), GOMAXPROCS %d", r.Title, r.Name, r.Cores),
		Head:  []string{"", "ns", "x floor", "95 %", "spread", "allocs", "bytes", "compared with"},
	}
	entries := slices.Clone(r.Entries)
	slices.SortStableFunc(entries, func(a, b result.Entry) int { return cmp.Compare(order(&a), order(&b)) })
	for _, e := range entries {
		switch {
		case e.Cannot != "":
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
	t.Note = rowNote(r, "") + missingNote(r, peerList)
	return t
}

// rowNote says how many requests found their record, and compares weir with the do-it-yourself limiter that reads the
// same clock. The argument place is a text that says where the comparison was measured.
func rowNote(r *result.Row, place string) string {
	found, ratios := foundText(r), []string{}
	if found != "" {
		found = "Requests that find the record of their key in weir's table" + place + ": " + found + ". "
	}
	for _, c := range []struct{ clock, weir, word string }{
		{"the counter", measure.WeirTSC, peers.DIYCounter}, {"Go's clock", measure.WeirPrecise, "diy GCRA, xsync map"},
	} {
		if s, ok := r.Ratio(c.weir, c.word); ok {
			ratios = append(ratios, fmt.Sprintf("%.2f (%s) by %s", s.Median, shortInterval(s), c.clock))
		}
	}
	if len(ratios) == 0 {
		return found
	}
	return found + "Same clock" + place + ", weir by the do-it-yourself word: " + strings.Join(ratios, ", ") + ". "
}

// missingNote names the subjects that are not in a row's table, with the reasons.
func missingNote(r *result.Row, peerList []result.Peer) string {
	found, err := workload.Find(r.Name)
	if err != nil {
		return ""
	}
	reasons, order := map[string][]string{}, []string{}
	add := func(why, name string) {
		if reasons[why] == nil {
			order = append(order, why)
		}
		if !slices.Contains(reasons[why], name) {
			reasons[why] = append(reasons[why], name)
		}
	}
	for _, e := range r.Entries {
		if e.Cannot != "" {
			add(e.Cannot, e.Name)
		}
	}
	for _, p := range peerList {
		if _, ok := r.Entry(p.Name); ok {
			continue
		}
		// The reason comes from the run, because another machine may have made the run.
		why := ""
		if found.Want() < 1 {
			why = p.Cannot[peers.Refuse]
		}
		if found.Keys > 1 {
			why = cmp.Or(why, p.Cannot[peers.Keys])
		}
		add(cmp.Or(why, "no time for it in this run"), p.Name)
	}
	if len(order) == 0 {
		return ""
	}
	for i, why := range order {
		order[i] = why + ": " + strings.Join(reasons[why], ", ")
	}
	return "Without " + strings.Join(order, "; ") + "."
}

// isVariant reports whether a row is a variant of another row. Variants share a table.
func isVariant(r *result.Row) bool {
	found, err := workload.Find(r.Name)
	return err == nil && found.Differences() > 0
}

// returning returns a table about keys that come back. It compares them with the same keys under a limit that never
// leaves keys idle.
func returning(r *result.Run) table {
	t := table{
		Title: "Keys that come back idle, beside the same keys that never are",
		Note: "Both take turns in one process. Found is how many requests found the record of their key, in time in which " +
			"sweeps come at their default interval and every key about once a second.",
		Head: []string{"row", "cores", "ns", "never idle, ns", "x never idle", "95 %", "spread", "found"},
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		back, ok := row.Entry(weirOf(row))
		never, okNever := row.Entry(measure.WeirNeverIdle)
		if !ok || !okNever {
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

// foundText returns a text that says how many requests found their record.
func foundText(r *result.Row) string {
	switch {
	case r.Found == nil:
		return ""
	case r.Found.Error != "":
		return "failed: " + r.Found.Error
	}
	return fmt.Sprintf("%.2f %%", 100*r.Found.Fraction())
}

// order returns the number by which entries are sorted: the fastest entry first, and entries without a time last.
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

// count returns the allocations per decision as text. Very small numbers count as zero, because the runtime itself
// allocates.
func count(n float64) string {
	if n < 0.05 {
		return "0"
	}
	return fmt.Sprintf("%.3g", n)
}

// libraries returns a table of the libraries and the abilities that each lacks.
func libraries(r *result.Run) table {
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

func notMeasured(r *result.Run) table {
	t := table{Title: "Not measured", Head: []string{"", "because"}}
	for _, a := range r.Absent {
		t.add(a.Name, a.Reason)
	}
	return t
}

func percentileLabel(i int) string { return fmt.Sprintf("%g %%", experiment.Percentiles[i]) }
