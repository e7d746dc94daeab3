package replay

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weir-go/weir/cmd/internal/number"
)

// WriteTable writes the report for people. It lists up to top refused keys. Names of keys cannot affect a terminal,
// because package accesslog permits only printable ASCII.
func (r *Report) WriteTable(w io.Writer, top int) error {
	t := newTable(&r.Log)
	refusedKeys := uint64(len(r.RefusedKeys))
	t.totals(
		row{"requests", r.Requests, ""},
		row{"allowed", r.Allowed, share(r.Allowed, r.Requests)},
		row{"refused", r.Refused, share(r.Refused, r.Requests)},
		row{"keys", r.Keys, ""},
		row{"keys refused", refusedKeys, share(refusedKeys, r.Keys)})
	t.asLogged(r.Refused, r.AsLogged)
	t.reasons()
	t.mostRefused(r.RefusedKeys[:min(top, len(r.RefusedKeys))])
	return t.write(w, r.EvictionNote())
}

// WriteTable writes the comparison for people.
func (c *Comparison) WriteTable(w io.Writer) error {
	t := newTable(&c.Log)
	t.totals(
		row{"requests", c.Requests, ""},
		row{"keys", c.Keys, ""})
	t.reasons()
	t.outcomes(c.Outcomes)
	fmt.Fprintf(&t.out, "\nworst excess: the most that one key got through within any %v, less the limit of %s\n"+
		"unsorted: what is refused if the log is taken as it stands, each request at the latest time before it\n",
		c.Window, number.Comma(c.Limit))
	t.leftOut(c.LeftOut)
	return t.write(w, c.EvictionNote())
}

// table collects the text, so that only one write can fail. All numbers are padded to width, because tabwriter cannot
// align one column left and the next right.
type table struct {
	log   *Log
	out   bytes.Buffer
	width int
}

func newTable(l *Log) *table {
	return &table{log: l, width: max(len("requests"), len(number.Comma(max(l.Requests, l.Skipped))))}
}

func (t *table) write(w io.Writer, note string) error {
	if note != "" {
		fmt.Fprintf(&t.out, "\n%s\n", note)
	}
	_, err := t.out.WriteTo(w)
	return err
}

func (t *table) number(text string) string { return fmt.Sprintf("%*s", t.width, text) }

type row struct {
	name string
	n    uint64
	note string
}

// totals writes the given rows, and then the rows that every kind of report has.
func (t *table) totals(rows ...row) {
	l := t.log
	late, astray := "", ""
	if l.Late > 0 {
		late = "by at most " + formatDays(l.MostLate) + ", sorted"
	}
	if l.Astray > 0 {
		astray = number.Comma(l.Astray) + " because their date is far from those around it"
	}
	rows = append(rows, row{"out of order", l.Late, late}, row{"lines skipped", l.Skipped, astray})
	tw := tabwriter.NewWriter(&t.out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t%s", r.name, t.number(number.Comma(r.n)))
		if r.note != "" {
			fmt.Fprintf(tw, "\t%s", r.note)
		}
		fmt.Fprintln(tw)
	}
	tw.Flush()
	fmt.Fprintf(&t.out, "\nfrom %s to %s (%s)\n", formatTime(l.First), formatTime(l.Last), formatDays(l.Last.Sub(l.First)))
	if l.ProxyNote != "" {
		fmt.Fprintf(&t.out, "\n%s\n", l.ProxyNote)
	}
}

func (t *table) asLogged(refused, asLogged uint64) {
	if t.log.Late > 0 {
		fmt.Fprintf(&t.out, "\n%s\n", sortingNote(t.log, refused, asLogged))
	}
}

func sortingNote(l *Log, refused, asLogged uint64) string {
	part := func(n uint64) string { return strings.TrimSpace(share(n, l.Requests)) }
	return fmt.Sprintf("Sorting changes what is refused from %s (%s) to %s (%s) of the requests.",
		part(asLogged), number.Comma(asLogged), part(refused), number.Comma(refused))
}

func (t *table) reasons() {
	l := t.log
	if l.Skipped == 0 {
		return
	}
	fmt.Fprintln(&t.out, "\nSkipped:")
	for _, reason := range l.Reasons {
		fmt.Fprintf(&t.out, "  %s\n", reason)
	}
	if more := l.Skipped - uint64(len(l.Reasons)); more > 0 {
		fmt.Fprintf(&t.out, "  and %s more\n", number.Comma(more))
	}
}

func (t *table) mostRefused(keys []Key) {
	if len(keys) == 0 {
		return
	}
	t.keys("most refused", keys)
}

func (t *table) keys(heading string, keys []Key) {
	g := t.grid(heading, t.number("requests"), t.number("refused"), "   share")
	for _, k := range keys {
		g.line(k.Name, number.Comma(k.Requests), number.Comma(k.Refused), share(k.Refused, k.Requests))
	}
	g.flush()
}

func (t *table) outcomes(list []Compared) {
	g := t.grid("policy", t.number("allowed"), t.number("refused"), "   share", "unsorted", "keys refused",
		"worst excess", "bytes a key")
	for _, o := range list {
		g.line(o.Policy.String(),
			number.Comma(o.Allowed), number.Comma(o.Refused), share(o.Refused, t.log.Requests),
			number.Comma(o.AsLogged),
			number.Comma(uint64(len(o.RefusedKeys))), number.Comma(o.WorstExcess),
			number.Comma(uint64(math.Round(o.BytesPerKey))))
	}
	g.flush()
}

type grid struct {
	w        *tabwriter.Writer
	headings []string
}

func (t *table) grid(name string, headings ...string) *grid {
	fmt.Fprintln(&t.out)
	g := &grid{tabwriter.NewWriter(&t.out, 0, 0, 2, ' ', 0), headings}
	g.line(name, append([]string(nil), headings...)...)
	return g
}

func (g *grid) line(name string, cells ...string) {
	for i := range cells {
		cells[i] = fmt.Sprintf("%*s", len(g.headings[i]), cells[i])
	}
	fmt.Fprintf(g.w, "%s\t%s\n", name, strings.Join(cells, "\t"))
}

func (g *grid) flush() { g.w.Flush() }

func (t *table) leftOut(policies []LeftOut) {
	if len(policies) == 0 {
		return
	}
	fmt.Fprintln(&t.out, "\nLeft out (a smaller --max-keys needs less memory):")
	for _, l := range policies {
		fmt.Fprintf(&t.out, "  %s\n", l)
	}
}

// share returns part as a percentage of total, or "-" if total is 0.
func share(part, total uint64) string {
	if total == 0 {
		return "-"
	}
	return fmt.Sprintf("%6.2f %%", 100*float64(part)/float64(total))
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// formatDays returns a duration as text. It has days, which the String method of time.Duration does not have.
func formatDays(d time.Duration) string {
	const day = 24 * time.Hour
	if d < day {
		return d.String()
	}
	return fmt.Sprintf("%dd %s", d/day, d%day)
}
