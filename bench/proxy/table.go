package proxy

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/weir-go/weir/bench/proxy/server"
	"github.com/weir-go/weir/bench/result"
)

// Text writes the run for a terminal.
func Text(w io.Writer, r *Run) error {
	m := r.Machine
	fmt.Fprintf(w, "The limiter in a proxy: %s, %d cores, %s, Linux %s, %s\n", m.CPU, m.Cores, m.System, m.Kernel,
		r.Started.Format(time.DateOnly))
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		fmt.Fprintf(w, "  %s: %s\n", name, r.Versions[name])
	}
	fmt.Fprintf(w, "  %d rounds of %d s, wrk -t%d -c%d, %d clients in turn, named by %s\n",
		r.Rounds, r.Seconds, wrkThreads, wrkConnections, clients, clientHeader)
	for _, write := range []func(io.Writer, *Run){speed, latency, refusals, proxies} {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w)
		write(t, r)
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	for _, row := range r.Rows {
		if row.Mode == server.Without {
			fmt.Fprintf(w, "%s: %s\n", row.Server.Name, row.Server.Says)
		}
	}
	_, err := fmt.Fprintln(w, target(r))
	return err
}

// pairs calls do for every server that was measured with its limiter and without.
func (r *Run) pairs(do func(name string, without, with *Row)) {
	for i := range r.Rows {
		row := &r.Rows[i]
		if with := r.Row(row.Server.Name, server.With); row.Mode == server.Without && with != nil {
			do(row.Server.Name, row, with)
		}
	}
}

func speed(w io.Writer, r *Run) {
	fmt.Fprintln(w, "requests/s\twithout\twith\twith/without\trange\tCPU a request\twith\twith - without")
	r.pairs(func(name string, without, with *Row) {
		ratio := ratios(with, without, perSecond)
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.3f\t%.3f - %.3f\t%s\t%s\t%s\n", name,
			without.sum(perSecond).Median, with.sum(perSecond).Median, ratio.Median, ratio.Min, ratio.Max,
			micros(without.sum(cpu)), micros(with.sum(cpu)), micros(differences(with, without, cpu)))
	})
}

func latency(w io.Writer, r *Run) {
	fmt.Fprintln(w, "latency\tp50 without\twith\tp99 without\twith\tp99 with/without\trange")
	r.pairs(func(name string, without, with *Row) {
		ratio := ratios(with, without, p99)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.2f\t%.2f - %.2f\n", name,
			micros(without.sum(p50)), micros(with.sum(p50)), micros(without.sum(p99)), micros(with.sum(p99)),
			ratio.Median, ratio.Min, ratio.Max)
	})
}

func refusals(w io.Writer, r *Run) {
	fmt.Fprintln(w, "refused\trequests/s\trange\trefused share\tp50\tp99\tCPU a request")
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Mode != server.Refuse {
			continue
		}
		s := row.sum(refusedPerSecond)
		fmt.Fprintf(w, "%s\t%.0f\t%.0f - %.0f\t%.4f\t%s\t%s\t%s\n", row.Server.Name, s.Median, s.Min, s.Max,
			row.sum(refusedShare).Median, micros(row.sum(p50)), micros(row.sum(p99)), micros(row.sum(cpu)))
	}
}

// proxies compares the processor time of a request without limiters with that of Go's own proxy.
func proxies(w io.Writer, r *Run) {
	bare := r.Row(server.BareName, server.Without)
	if bare == nil {
		return
	}
	fmt.Fprintf(w, "without a limiter\trequests/s\tCPU a request\tby that of %s\trange\n", server.BareName)
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Mode != server.Without {
			continue
		}
		ratio := ratios(row, bare, cpu)
		fmt.Fprintf(w, "%s\t%.0f\t%s\t%.2f\t%.2f - %.2f\n", row.Server.Name, row.sum(perSecond).Median, micros(row.sum(cpu)),
			ratio.Median, ratio.Min, ratio.Max)
	}
}

func refusedShare(r Round) float64     { return float64(r.Refused) / float64(r.Requests) }
func refusedPerSecond(r Round) float64 { return r.PerSecond * refusedShare(r) }

func ratios(a, b *Row, of func(Round) float64) result.Summary {
	return result.Summarize(result.Ratios(a.figures(of), b.figures(of)))
}

// differences sums up a - b, round by round.
func differences(a, b *Row, of func(Round) float64) result.Summary {
	figures := a.figures(of)
	for i, f := range b.figures(of) {
		figures[i] -= f
	}
	return result.Summarize(figures)
}

// micros shows the median of nanoseconds.
func micros(s result.Summary) string { return fmt.Sprintf("%.1f us", s.Median/1e3) }
