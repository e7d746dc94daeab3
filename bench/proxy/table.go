package proxy

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weir-go/weir/bench/markdown"
	"github.com/weir-go/weir/bench/proxy/server"
	"github.com/weir-go/weir/bench/result"
)

// Command is the name of the program that measures, as written in documents.
const Command = "weir-bench-proxy"

type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// Text writes the run for a terminal.
func Text(w io.Writer, r *Run) error {
	fmt.Fprintln(w, "The limiter in a proxy:", headline(r))
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		fmt.Fprintf(w, "  %s: %s\n", name, r.Versions[name])
	}
	for _, t := range tables(r) {
		columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{nil, t.head}, t.rows...) {
			fmt.Fprintln(columns, strings.Join(row, "\t"))
		}
		if err := columns.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	for _, row := range r.Rows {
		if row.Mode == server.Without {
			fmt.Fprintf(w, "%s: %s\n", row.Server.Name, row.Server.Says)
		}
	}
	for _, t := range targets {
		if _, err := fmt.Fprintln(w, t.verdict(r)); err != nil {
			return err
		}
	}
	return nil
}

// Document writes the figures of a run into a Markdown document, between the two lines that mark their position. It
// returns an error if the lines are missing.
func Document(path string, r *Run) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, by `%s`.\n\n", headline(r), r.Command)
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		fmt.Fprintf(&b, "- %s: %s\n", name, r.Versions[name])
	}
	b.WriteString("\n")
	for _, t := range tables(r) {
		markdown.Table(&b, t.head, t.rows)
	}
	for _, t := range targets {
		fmt.Fprintf(&b, "- %s\n", t.verdict(r))
	}
	b.WriteString("\n")
	return markdown.Fill(path, Command, b.String())
}

// headline returns the text that says where and how the run measured.
func headline(r *Run) string {
	m := r.Machine
	return fmt.Sprintf("%s, %d cores, %s, Linux %s, %s, %d rounds of %d s and %d turns of %d s, wrk -t%d -c%d, %d clients in turn, named by %s",
		m.CPU, m.Cores, m.System, m.Kernel, r.Started.Format(time.DateOnly), r.Rounds, r.Seconds, r.turns(), turnTime, wrkThreads, wrkConnections,
		clients, clientHeader)
}

func tables(r *Run) []table { return []table{proxies(r), speed(r), latency(r), refusals(r)} }

// For every server that was measured with and without its limiter, pairs calls the function do.
func (r *Run) pairs(do func(name string, without, with *Row)) {
	for i := range r.Rows {
		row := &r.Rows[i]
		if with := find(r.Rows, rowName{row.Server.Name, server.With}); row.Mode == server.Without && with != nil {
			do(row.Server.Name, row, with)
		}
	}
}

// proxies returns a table that compares the processor time per request with Go's standard proxy. The times are from the
// turns.
func proxies(r *Run) table {
	t := table{head: []string{"by turns", "limiter", "requests/s", "CPU a request", "by that of " + server.BareName, "range"}}
	bare := find(r.Turns, rowName{server.BareName, server.Without})
	if bare == nil {
		bare = &Row{}
	}
	for i := range r.Turns {
		row := &r.Turns[i]
		cells := []string{row.Server.Name, string(row.Mode), fmt.Sprintf("%.0f", row.sum(perSecond).Median), micros(row.sum(cpu))}
		if len(bare.Rounds) == len(row.Rounds) {
			cells = append(cells, spread(ratios(row, bare, cpu), 2)...)
		}
		t.rows = append(t.rows, cells)
	}
	return t
}

func speed(r *Run) table {
	t := table{head: []string{"requests/s", "without", "with", "with/without", "range", "CPU a request", "with",
		"with - without"}}
	r.pairs(func(name string, without, with *Row) {
		t.add(slices.Concat(
			[]string{name, fmt.Sprintf("%.0f", without.sum(perSecond).Median), fmt.Sprintf("%.0f", with.sum(perSecond).Median)},
			spread(ratios(with, without, perSecond), 3),
			[]string{micros(without.sum(cpu)), micros(with.sum(cpu)), micros(differences(with, without, cpu))})...)
	})
	return t
}

func latency(r *Run) table {
	t := table{head: []string{"latency", "p50 without", "with", "p99 without", "with", "p99 with/without", "range"}}
	r.pairs(func(name string, without, with *Row) {
		t.add(slices.Concat(
			[]string{name, micros(without.sum(p50)), micros(with.sum(p50)), micros(without.sum(p99)), micros(with.sum(p99))},
			spread(ratios(with, without, p99), 2))...)
	})
	return t
}

func refusals(r *Run) table {
	t := table{head: []string{"refused", "requests/s", "range", "refused share", "p50", "p99", "CPU a request"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Mode != server.Refuse {
			continue
		}
		t.add(slices.Concat([]string{row.Server.Name}, spread(row.sum(refusedPerSecond), 0),
			[]string{fmt.Sprintf("%.4f", row.sum(refusedShare).Median), micros(row.sum(p50)), micros(row.sum(p99)),
				micros(row.sum(cpu))})...)
	}
	return t
}

func refusedShare(r Round) float64     { return float64(r.Refused) / float64(r.Requests) }
func refusedPerSecond(r Round) float64 { return r.PerSecond * refusedShare(r) }

func ratios(a, b *Row, of func(Round) float64) result.Summary {
	return result.Summarize(result.Ratios(a.figures(of), b.figures(of)))
}

// differences returns a summary of the differences a - b, one for each round.
func differences(a, b *Row, of func(Round) float64) result.Summary {
	figures := a.figures(of)
	for i, f := range b.figures(of) {
		figures[i] -= f
	}
	return result.Summarize(figures)
}

func spread(s result.Summary, decimals int) []string {
	return []string{
		fmt.Sprintf("%.*f", decimals, s.Median),
		fmt.Sprintf("%.*f - %.*f", decimals, s.Min, decimals, s.Max),
	}
}

func micros(s result.Summary) string { return fmt.Sprintf("%.1f us", s.Median/1e3) }
