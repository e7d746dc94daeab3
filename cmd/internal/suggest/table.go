package suggest

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/weir-go/weir/cmd/internal/number"
)

// WriteTable writes the curve of the rule of that name for people.
func (c *Curve) WriteTable(w io.Writer, name string) error {
	var out strings.Builder
	requests, keys := number.Comma(c.Requests), number.Comma(c.Keys)
	if c.ByKeys {
		fmt.Fprintf(&out, "\n%s: at most %v %% of %s keys refused any of their %s requests\n", name, c.Percent, keys, requests)
	} else {
		fmt.Fprintf(&out, "\n%s: at most %v %% of %s requests of %s keys refused\n", name, c.Percent, requests, keys)
	}
	if c.Best < 0 {
		fmt.Fprintf(&out, "no suggestion: %s\n", c.Reason)
	} else {
		c.table(&out)
		best := &c.Points[c.Best]
		fmt.Fprintf(&out, "\nsuggested for %s: %s\nbecause it is %s\n", name, best.Settings(), c.Reason)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (c *Curve) table(out io.Writer) {
	across := "burst"
	if c.Points[0].Window > 0 {
		across = "window"
	}
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "\n\t%s\tlowest rate\trefused\tshare\tnext lower rate\trefused\tshare\t\n", across)
	for i := range c.Points {
		p, mark := &c.Points[i], ""
		if i == c.Best {
			mark = "*"
		}
		fmt.Fprintf(tw, "%s\t%s\t%v\t%s\t%s\t", mark, p.Across(), p.Rate, number.Comma(p.Refused), c.share(p.Refused))
		if p.HasLower() {
			fmt.Fprintf(tw, "%v\t%s\t%s\t\n", p.Lower, number.Comma(p.LowerRefused), c.share(p.LowerRefused))
		} else {
			fmt.Fprint(tw, "-\t-\t-\t\n")
		}
	}
	tw.Flush()
}

// Across is the burst, or the window, as a text.
func (p *Point) Across() string {
	if p.Window > 0 {
		return p.Window.String()
	}
	return number.Comma(p.Burst)
}

// Settings is the point as a rule file has it.
func (p *Point) Settings() string {
	if p.Burst == 0 {
		return fmt.Sprintf("rate: %v", p.Rate)
	}
	return fmt.Sprintf("rate: %v, burst: %d", p.Rate, p.Burst)
}

func (c *Curve) share(refused uint64) string {
	return fmt.Sprintf("%.2f %%", 100*float64(refused)/float64(max(c.Total(), 1)))
}
