package rulefile

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// Describe writes what the file means: where the server listens, where it passes requests, and every rule in words with
// its memory.
func (f *File) Describe(w io.Writer) error {
	var b strings.Builder
	root := f.section()
	root.summary(func(label, text string) { fmt.Fprintf(&b, "%-10s%s\n", label, text) })
	total, err := f.Redis.Memory()
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	for i := range f.Rules {
		r := &f.Rules[i]
		memory, err := r.Memory()
		if err != nil {
			return fmt.Errorf("rule %s: %w", r.Name, err)
		}
		total += memory
		r.describe(&b)
	}
	fmt.Fprintf(&b, "\n%d %s, about %s of memory when the tables are full\n", len(f.Rules),
		english.PluralWord(len(f.Rules), "rule", ""), humanize.IBytes(total))
	_, err = io.WriteString(w, b.String())
	return err
}

func (r *Rule) describe(b *strings.Builder) {
	fmt.Fprintf(b, "\nrule %s%s\n", r.Name, textIf(r.Shadow, " (shadow: counts, never refuses)"))
	line := func(label, text string) { fmt.Fprintf(b, "  %-8s%s\n", label, text) }
	s := (&ruleText{Rule: *r}).section()
	s.summary(line)
	for i, text := range r.Bound() {
		line(textIf(i == 0, "bound"), text)
	}
	if r.State != "" {
		line("state", r.State)
	}
	if r.Debts != "" {
		line("state", "debts to the store: "+r.Debts+".*"+debtSuffix)
	}
}

// String returns the statuses as in a file.
func (s Statuses) String() string {
	words := make([]string, len(s))
	for i, r := range s {
		if words[i] = fmt.Sprint(r.First); r.Last > r.First {
			words[i] = fmt.Sprintf("%dxx", r.First/100)
		}
	}
	return joinOr(words)
}

func textIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}
