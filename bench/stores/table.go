package stores

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/bench/markdown"
)

// Markdown returns the results as two tables.
func Markdown(results []Result) string {
	var b strings.Builder
	var cost, faults [][]string
	for _, r := range results {
		cost = append(cost, []string{
			r.Subject, fmt.Sprintf("%.3f", r.Scripts), micros(r.Processor), micros(r.P50), micros(r.P99),
			fmt.Sprintf("%.0f", r.Rate), fmt.Sprintf("%d of %d", r.Errors, r.Decisions),
		})
		back := "not within a second"
		if r.PauseBack > 0 {
			back = millis(r.PauseBack)
		}
		faults = append(faults, []string{
			r.Subject, fmt.Sprintf("%.0f of %.0f: %+.1f %%", r.Admitted, r.Bound, 100*(r.Admitted/r.Bound-1)),
			millis(r.PauseLongest), fmt.Sprintf("%d of %d", r.PauseErrors, r.PauseAsked), back,
			fmt.Sprintf("%d of %d", r.HerdAnswered, herd), millis(r.HerdTook),
		})
	}
	markdown.Table(&b, []string{"", "scripts a decision", "store's processor, µs", "p50, µs", "p99, µs", "decisions a second", "errors"}, cost)
	markdown.Table(&b, []string{"", "admitted, of the bound", "longest in the pause, ms", "errors", "back after, ms", "herd answered", "within, ms"}, faults)
	return b.String()
}

func micros(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Microsecond)) }
func millis(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d)/float64(time.Millisecond)) }
