// Package report shows a run as text, as a web page, or as charts.
package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/weir-go/weir/bench/result"
)

// A table can be written as text, as Markdown and on the web page.
type table struct {
	Title string
	Note  string
	Head  []string
	Rows  []line
}

type line struct {
	Cells []string
	Under []string
	Class string // for the style of the page: met, missed, weir, floor
}

func (t *table) add(cells ...string) { t.Rows = append(t.Rows, line{Cells: cells}) }

// Text writes the run for a terminal. The targets come first.
func Text(w io.Writer, r *result.Run) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", headline(r))
	for _, t := range tables(r) {
		if len(t.Rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", t.Title)
		if err := t.text(&b); err != nil {
			return err
		}
		if t.Note != "" {
			fmt.Fprintf(&b, "  %s\n", t.Note)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// text writes the table in columns. It writes the remarks under a line unchanged.
func (t *table) text(w io.Writer) error {
	var b strings.Builder
	columns := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, strings.Join(t.Head, "\t"))
	for _, l := range t.Rows {
		fmt.Fprintln(columns, strings.Join(l.Cells, "\t"))
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	for i, text := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		if text = strings.TrimRight(text, " "); text != "" {
			fmt.Fprintf(w, "  %s\n", text)
		}
		if i > 0 {
			for _, under := range t.Rows[i-1].Under {
				fmt.Fprintf(w, "      %s\n", under)
			}
		}
	}
	return nil
}
