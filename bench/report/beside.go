package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/bench/target"
)

// sideBySide returns a table for each row, with its times on every number of cores.
func sideBySide(r *result.Run) (list []table) {
	for i := range r.Rows {
		name := r.Rows[i].Name
		isSame := func(x result.Row) bool { return x.Name == name }
		if isVariant(&r.Rows[i]) || slices.ContainsFunc(r.Rows[:i], isSame) {
			continue
		}
		t := table{Title: fmt.Sprintf("%s (%s)", r.Rows[i].Title, name), Head: []string{""}}
		measured := result.Row{Name: name}
		for _, row := range r.Rows[i:] {
			if !isSame(row) {
				continue
			}
			t.addColumns(&row)
			measured.Entries = append(measured.Entries, row.Entries...)
			t.Note += rowNote(&row, " on "+plural(row.Cores, "core"))
		}
		t.Note = strings.TrimSpace(t.Note + missingNote(&measured, r.Peers))
		list = append(list, t)
	}
	return list
}

// addColumns adds two columns to the table: the time of a decision with its allocations, and the ratio to the
// floor with the same clock. A new subject gets a new line.
func (t *table) addColumns(row *result.Row) {
	t.Head = append(t.Head, plural(row.Cores, "core")+", ns", "x floor")
	entries := slices.Clone(row.Entries)
	slices.SortStableFunc(entries, func(a, b result.Entry) int { return cmp.Compare(order(&a), order(&b)) })
	for _, e := range entries {
		if e.Cannot != "" {
			continue
		}
		i := slices.IndexFunc(t.Rows, func(l line) bool { return l.Cells[0] == e.Name })
		if i < 0 {
			i = len(t.Rows)
			t.add(e.Name)
		}
		l := &t.Rows[i]
		l.Cells = append(l.Cells, slices.Repeat([]string{""}, len(t.Head)-2-len(l.Cells))...)
		time, ratio := "failed", e.Error
		if e.Error == "" {
			time = fmt.Sprintf("%.1f", e.Median())
			if objects := count(e.Allocs); objects != "0" {
				time += fmt.Sprintf(" (%s allocs, %s bytes)", objects, count(e.Bytes))
			}
			if s, ok := row.Ratio(e.Name, e.Floor); ok {
				ratio = fmt.Sprintf("%.2f (%s)", s.Median, shortInterval(s))
			}
		}
		l.Cells = append(l.Cells, time, ratio)
	}
	for i := range t.Rows {
		l := &t.Rows[i]
		l.Cells = append(l.Cells, slices.Repeat([]string{""}, len(t.Head)-len(l.Cells))...)
	}
}

func shortInterval(s result.Summary) string {
	interval, _, _ := strings.Cut(target.Interval(s), ", ")
	return strings.ReplaceAll(interval, " - ", "-")
}

// targetTable returns a table with a line for each target: its rows, grouped by verdict.
func targetTable(r *result.Run) table {
	t := table{Title: "Targets", Head: []string{"target", target.Met, target.Undecided, target.Missed}}
	for _, x := range r.Targets {
		i := slices.IndexFunc(t.Rows, func(l line) bool { return l.Cells[0] == x.Target })
		if i < 0 {
			i = len(t.Rows)
			t.add(x.Target, "", "", "")
		}
		entry := x.Row + ": " + cmp.Or(x.Measured, x.Verdict)
		if interval, rest, _ := strings.Cut(x.Spread, ", "); strings.Contains(rest, "rounds") { // the target of a row
			entry += " (" + strings.ReplaceAll(interval, " - ", "-") + ")"
		} else if more := strings.Trim(x.Spread+"; "+x.Why, "; "); more != "" {
			entry += " (" + more + ")"
		}
		column := slices.Index(t.Head, x.Verdict)
		if x.Verdict == target.Unmeasured {
			column = slices.Index(t.Head, target.Undecided)
		}
		cell := &t.Rows[i].Cells[column]
		*cell = strings.TrimPrefix(*cell+"; "+entry, "; ")
	}
	return t
}
