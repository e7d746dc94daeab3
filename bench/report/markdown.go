package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/bench/markdown"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/result"
)

// docsCommand is the command that the documents name as the source of their figures.
const docsCommand = "weir bench"

// Document writes the figures of a run, without the spread and the summary, between two marked lines of a Markdown
// document. Missing lines are an error.
func Document(path string, r *result.Run) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, by `%s`.\n\n", headline(r), r.Command)
	for _, t := range slices.Concat([]table{targetTable(r), weirOnRows(r)}, sideBySide(r), costs(r)) {
		if len(t.Rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "### %s\n\n", t.Title)
		t.markdown(&b)
		if t.Note != "" {
			fmt.Fprintf(&b, "%s\n\n", t.Note)
		}
	}
	return markdown.Fill(path, docsCommand, b.String())
}

// Short writes a summary for new readers between the same lines as Document. The summary has the tables of r and of
// others, which are runs on other machines. Short also calls WriteCharts, to write the pictures of r into the folder
// images.
func Short(path string, r *result.Run, others ...*result.Run) error {
	var b strings.Builder
	note := ""
	for _, run := range append([]*result.Run{r}, others...) {
		fmt.Fprintf(&b, "\n%s.\n\n", headline(run))
		for _, t := range glance(run) {
			t.markdown(&b)
			note = t.Note
		}
	}
	fmt.Fprintf(&b, "%s\n\n", note)
	for i := range r.Rows {
		if row := &r.Rows[i]; isShown(row) {
			fmt.Fprintf(&b, "![%s, %s](images/%s)\n\n", row.Title, plural(row.Cores, "core"), chartOf(row))
		}
	}
	return markdown.Fill(path, docsCommand, b.String())
}

func weirOnRows(r *result.Run) table {
	t := table{Title: "weir on every row", Head: []string{"row", "", "1 core", "x floor", "all cores", "x floor"},
		Note: "The floor is the least that an exact limiter was found to do for the same keys in a table of the same size."}
	for i := range r.Rows {
		row := &r.Rows[i]
		e, ok := row.Entry(weirOf(row))
		if !ok || !measure.IsFloor(e.Floor) || isVariant(row) {
			continue
		}
		s, ok := row.Ratio(e.Name, e.Floor)
		if !ok {
			continue
		}
		name := "`" + row.Name + "`"
		index := slices.IndexFunc(t.Rows, func(l line) bool { return l.Cells[0] == name })
		if index < 0 {
			index = len(t.Rows)
			t.add(name, row.Title, "", "", "", "")
		}
		first := 2
		if row.Cores > 1 {
			first = 4
		}
		copy(t.Rows[index].Cells[first:], []string{fmt.Sprintf("%.1f ns", e.Median()), fmt.Sprintf("%.2f", s.Median)})
	}
	return t
}

// markdown writes the table. The remarks under a line are written into an additional last cell of the line.
func (t *table) markdown(b *strings.Builder) {
	head, under := t.Head, false
	for _, l := range t.Rows {
		under = under || len(l.Under) > 0
	}
	if under {
		head = append(head[:len(head):len(head)], "")
	}
	rows := make([][]string, len(t.Rows))
	for i, l := range t.Rows {
		rows[i] = l.Cells
		if len(l.Under) > 0 {
			rows[i] = make([]string, len(head))
			copy(rows[i], l.Cells)
			rows[i][len(head)-1] = strings.Join(l.Under, "; ")
		}
	}
	markdown.Table(b, head, rows)
}
