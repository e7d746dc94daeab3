package sim

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// WriteTable writes the report as tables for people.
func (r *Report) WriteTable(w io.Writer) error {
	var out bytes.Buffer
	tw := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "requests\t%d\n", r.Offered)
	if r.Tokens != r.Offered {
		fmt.Fprintf(tw, "tokens\t%d\tthat they cost; what follows is in tokens\n", r.Tokens)
	}
	fmt.Fprintf(tw, "ideal\t%d\tadmitted by one limiter for all\n", r.Ideal)
	if r.Keys > 1 {
		fmt.Fprintf(tw, "keys\t%d\tof which %d were asked for\n", r.Keys, r.Asked)
	}
	if r.Away != nil {
		fmt.Fprintf(tw, "store\taway\tfrom %v to %v\n", r.Away.From, r.Away.To)
	}
	fmt.Fprintf(tw, "limit\t%s\ta key in the %s s, and the burst of %d\n\n", number(r.Limit), number(r.Seconds), r.Burst)
	tw.Flush()

	rows := [][]string{
		{"", "", "of the", "of the", "beyond", "wrongly", "asked", "", "most", "worst", "", ""},
		{"strategy", "admitted", "limit", "allowed", "ideal", "refused", "/key/s", "calls/s", "held", "excess", "bound", ""},
	}
	for _, result := range r.Results {
		bound := "holds"
		if !result.Holds {
			bound = "BROKEN"
		}
		rows = append(rows, []string{
			result.Strategy, strconv.FormatUint(result.Admitted, 10), percent(result.FirstOfLimit), percent(result.FirstOfAllowed),
			strconv.FormatUint(result.Excess, 10), fmt.Sprintf("%.3f %%", 100*result.RefusedShare),
			fmt.Sprintf("%.1f", result.AskedAKey), fmt.Sprintf("%.1f", result.CallsASec),
			strconv.FormatUint(result.Held, 10), fmt.Sprintf("%.1f", result.Worst), number(result.WorstBound), bound,
		})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], len(text))
		}
	}
	for _, row := range rows {
		fmt.Fprintf(&out, "%-*s", widths[0], row[0])
		for i, text := range row[1:] {
			if i == len(row)-2 {
				fmt.Fprintf(&out, "  %s", text)
			} else {
				fmt.Fprintf(&out, "  %*s", widths[i+1], text)
			}
		}
		out.Truncate(len(bytes.TrimRight(out.Bytes(), " ")))
		out.WriteByte('\n')
	}
	out.WriteByte('\n')
	if r.Keys > 1 {
		fmt.Fprintln(&out, "of the limit, of the allowed: what the key that is asked for most got")
	}
	fmt.Fprintln(&out, `asked/key/s: questions to the store about a key
calls/s: of all nodes together, each with the up to 64 questions that waited
  while 8 calls of a node were under way
worst excess: the most beyond the rate and what nodes held before, in any
  interval; of settle-later since the start, by whole windows`)
	for _, o := range r.Results {
		if o.Note != "" {
			fmt.Fprintf(&out, "%s: %s\n", o.Strategy, o.Note)
		}
	}
	_, err := out.WriteTo(w)
	return err
}

func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
