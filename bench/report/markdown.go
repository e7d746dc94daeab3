package report

import (
	"fmt"
	"strings"

	"github.com/weir-go/weir/bench/markdown"
	"github.com/weir-go/weir/bench/result"
)

// docsCommand is what the documents say that their figures are from.
const docsCommand = "weir bench"

// Document puts the figures of a run into a Markdown document, between the two lines that say
// where. A document without them is an error.
func Document(path string, r *result.Run) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, by `%s`.\n\n", headline(r), r.Command)
	for _, t := range tables(r) {
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

// markdown writes the table; what stands under a line comes into its last cell.
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
