package report

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/internal/atomicfile"
)

// The lines of a document that enclose its figures.
const (
	figuresBegin = "<!-- figures: weir bench --docs writes what follows -->\n"
	figuresEnd   = "<!-- end of figures -->\n"
)

// Document puts the figures of a run into a Markdown document, between the two lines that say
// where. A document without them is an error.
func Document(path string, r *result.Run) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := bytes.Cut(text, []byte(figuresBegin))
	_, after, ends := bytes.Cut(rest, []byte(figuresEnd))
	if !begins || !ends {
		return fmt.Errorf("%s: want the lines %q and %q, one below the other", path, strings.TrimSpace(figuresBegin),
			strings.TrimSpace(figuresEnd))
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s%s%s%s%s", before, figuresBegin, markdown(r), figuresEnd, after)
		return err
	})
}

// markdown returns the run as tables.
func markdown(r *result.Run) string {
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
	return b.String()
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
	cells := func(cells []string) {
		for i := range head {
			cell := ""
			if i < len(cells) {
				cell = strings.ReplaceAll(cells[i], "|", `\|`)
			}
			fmt.Fprintf(b, "| %s ", cell)
		}
		b.WriteString("|\n")
	}
	cells(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, l := range t.Rows {
		row := l.Cells
		if len(l.Under) > 0 {
			row = make([]string, len(head))
			copy(row, l.Cells)
			row[len(head)-1] = strings.Join(l.Under, "; ")
		}
		cells(row)
	}
	b.WriteString("\n")
}
