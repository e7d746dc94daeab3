// Package markdown writes results into documents.
package markdown

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weir-go/weir/internal/atomicfile"
)

// End is the line after the figures in a document.
const End = "<!-- end of figures -->\n"

// Begin returns the line before the figures that a command writes into a document.
func Begin(command string) string {
	return fmt.Sprintf("<!-- figures: %s --docs writes what follows -->\n", command)
}

// Fill writes the figures of a command into a document, between the lines Begin(command) and End. It returns an error
// if one of these lines is missing.
func Fill(path, command, figures string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin := Begin(command)
	before, rest, begins := bytes.Cut(text, []byte(begin))
	_, after, ends := bytes.Cut(rest, []byte(End))
	if !begins || !ends {
		return fmt.Errorf("%s: want the lines %q and %q, one below the other", path, strings.TrimSpace(begin),
			strings.TrimSpace(End))
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s%s%s%s%s", before, begin, figures, End, after)
		return err
	})
}

// Table writes a table and an empty line. Rows may be shorter than the head.
func Table(b *strings.Builder, head []string, rows [][]string) {
	write := func(row []string) {
		for i := range head {
			cell := ""
			if i < len(row) {
				cell = strings.ReplaceAll(row[i], "|", `\|`)
			}
			fmt.Fprintf(b, "| %s ", cell)
		}
		b.WriteString("|\n")
	}
	write(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, row := range rows {
		write(row)
	}
	b.WriteString("\n")
}
