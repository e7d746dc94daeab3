package suggest

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weir-go/weir/cmd/internal/number"
	"github.com/weir-go/weir/engine"
)

// WriteTable writes the suggestion for a rule, for people. The parameter name is the name of the rule.
func (s *Suggestion) WriteTable(w io.Writer, name string) error {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s: limits that refuse %v\n%s requests of %s keys; %s if each counts once for each day (UTC) on "+
		"which it came\n", name, s.Goal, number.Comma(s.Requests), number.Comma(s.Keys), number.Comma(s.KeyDays))
	if len(s.Curves) > 0 {
		s.writePeriods(&out)
	}
	p := s.Point()
	if p == nil {
		fmt.Fprintf(&out, "\nno suggestion for %s: %s\n", name, s.Reason)
	} else {
		s.writeAround(&out)
		fmt.Fprintf(&out, "\nsuggested for %s: %s\nbecause it is %s\n", name, p.Settings(), s.Reason)
		fmt.Fprintf(&out, "it refuses %s requests (%s)\n", number.Comma(s.Refused), share(s.Refused, s.Requests))
		s.writeAffected(&out)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (s *Suggestion) writePeriods(out io.Writer) {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "\n\tlimit\tkeys refused\tshare\t\n")
	for i := range s.Curves {
		row(tw, s.Curves[i].Point(), i == s.Best, s.KeyDays)
	}
	tw.Flush()
}

// Around returns the limits near the suggested one. They show people what a slightly lower or higher limit would
// refuse.
func (c *Curve) Around() []Point {
	const below, above = 6, 3
	return c.Points[max(0, c.Best-below):min(len(c.Points), c.Best+above+1)]
}

func (s *Suggestion) writeAround(out io.Writer) {
	c := &s.Curves[s.Best]
	fmt.Fprintf(out, "\nothers for %v:\n", c.Period)
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "\n\tlimit\tkeys refused\tshare\t\n")
	points := c.Around()
	for i := range points {
		row(tw, &points[i], points[i].Rate == c.Point().Rate, s.KeyDays)
	}
	tw.Flush()
}

func row(tw io.Writer, p *Point, best bool, keys uint64) {
	mark := ""
	if best {
		mark = "*"
	}
	fmt.Fprintf(tw, "%s\t%v\t%s\t%s\t\n", mark, p.Rate, number.Comma(p.Refused), share(p.Refused, keys))
}

func (s *Suggestion) writeAffected(out io.Writer) {
	if len(s.Affected) == 0 {
		return
	}
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "\nmost affected\trequests\trefused\tlongest wait\tfirst refusal\n")
	for _, a := range s.Affected {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", a.Key, alignRight("requests", number.Comma(a.Requests)),
			alignRight("refused", number.Comma(a.Refused)), alignRight("longest wait", a.Wait()),
			a.First.Format("2006-01-02 15:04:05 UTC"))
	}
	tw.Flush()
}

func alignRight(heading, text string) string { return fmt.Sprintf("%*s", len(heading), text) }

// Wait returns the longest wait as text.
func (a *Affected) Wait() string {
	if a.LongestWait == engine.Never {
		return "for ever"
	}
	return a.LongestWait.Round(time.Millisecond).String()
}

func share(part, total uint64) string {
	return fmt.Sprintf("%.2f %%", 100*float64(part)/float64(max(total, 1)))
}
