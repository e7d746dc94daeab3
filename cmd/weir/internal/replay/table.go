package replay

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
)

// WriteTable writes the report for people, with at most top refused keys. Names
// are printable ASCII, as package accesslog checks, so none can steer a
// terminal.
func (r *Report) WriteTable(w io.Writer, top int) error {
	t := table{report: r}
	t.width = max(len("requests"), len(comma(max(r.Requests, r.Skipped))))
	t.totals()
	t.reasons()
	t.mostRefused(top)
	if note := r.EvictionNote(); note != "" {
		fmt.Fprintf(&t.out, "\n%s\n", note)
	}
	_, err := t.out.WriteTo(w)
	return err
}

// table collects the text, so that only one write can fail. Width is that of
// every column of numbers: tabwriter cannot align one column left and the next
// right.
type table struct {
	report *Report
	out    bytes.Buffer
	width  int
}

func (t *table) number(text string) string { return fmt.Sprintf("%*s", t.width, text) }

func (t *table) totals() {
	r := t.report
	tw := tabwriter.NewWriter(&t.out, 0, 0, 2, ' ', 0)
	row := func(name string, n uint64, note string) {
		fmt.Fprintf(tw, "%s\t%s", name, t.number(comma(n)))
		if note != "" {
			fmt.Fprintf(tw, "\t%s", note)
		}
		fmt.Fprintln(tw)
	}
	refusedKeys := uint64(len(r.RefusedKeys))
	row("requests", r.Requests, "")
	row("allowed", r.Allowed, share(r.Allowed, r.Requests))
	row("refused", r.Refused, share(r.Refused, r.Requests))
	row("keys", r.Keys, "")
	row("keys refused", refusedKeys, share(refusedKeys, r.Keys))
	late := ""
	if r.Late > 0 {
		late = "by at most " + span(r.MostLate)
	}
	row("out of order", r.Late, late)
	row("lines skipped", r.Skipped, "")
	tw.Flush()
	fmt.Fprintf(&t.out, "\nfrom %s to %s (%s)\n", instant(r.First), instant(r.Last), span(r.Last.Sub(r.First)))
}

func (t *table) reasons() {
	r := t.report
	if r.Skipped == 0 {
		return
	}
	fmt.Fprintln(&t.out, "\nSkipped:")
	for _, reason := range r.Reasons {
		fmt.Fprintf(&t.out, "  %s\n", reason)
	}
	if more := r.Skipped - uint64(len(r.Reasons)); more > 0 {
		fmt.Fprintf(&t.out, "  and %s more\n", comma(more))
	}
}

func (t *table) mostRefused(top int) {
	keys := t.report.RefusedKeys
	keys = keys[:min(top, len(keys))]
	if len(keys) == 0 {
		return
	}
	fmt.Fprintln(&t.out)
	tw := tabwriter.NewWriter(&t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "most refused\t%s\t%s\t%8s\n", t.number("requests"), t.number("refused"), "share")
	for _, k := range keys {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n",
			k.Name, t.number(comma(k.Requests)), t.number(comma(k.Refused)), share(k.Refused, k.Requests))
	}
	tw.Flush()
}

// comma writes 1234567 as 1,234,567.
func comma(n uint64) string { return humanize.Comma(int64(n)) }

// share writes part as a percentage of whole, which is not zero.
func share(part, whole uint64) string {
	return fmt.Sprintf("%6.2f %%", 100*float64(part)/float64(whole))
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// span writes a duration with its days apart, which time.Duration does not.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	if d < day {
		return d.String()
	}
	return fmt.Sprintf("%dd %s", d/day, d%day)
}
