package run

import (
	"context"
	"slices"
	"time"

	"github.com/weir-go/weir/bench/child"
	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/bench/workload"
)

// Do makes the measurements of the schedule, and calls the function done after every piece of work. It stops early only
// if the context ends, and then returns an error.
func (p *Schedule) Do(ctx context.Context, command string, done func()) (*result.Run, error) {
	r := &result.Run{
		Machine: result.ThisMachine(),
		Command: command,
		Started: time.Now().UTC().Truncate(time.Second),
		Rounds:  p.Rounds,
		Peers:   describe(),
		Absent:  peers.NotMeasured(),
	}
	p.prepare(r)
	steps := p.steps()
	for round := range p.maxRounds(steps) {
		for i := range p.cells {
			// Every other round is reversed, so that no cell always follows the same other cell.
			if round%2 == 1 {
				i = len(p.cells) - 1 - i
			}
			if c := p.cells[i]; round < c.rounds {
				row, _ := r.Row(c.row.Name, c.cores)
				rate(ctx, c, round, func(name string) *result.Entry { e, _ := row.Entry(name); return e })
				done()
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		for _, s := range steps {
			if round < s.times {
				s.do(ctx, r, round)
				done()
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
	}
	r.Took = time.Since(r.Started).Round(time.Second)
	return r, nil
}

func (p *Schedule) maxRounds(steps []step) int {
	n := 0
	for _, c := range p.cells {
		n = max(n, c.rounds)
	}
	for _, s := range steps {
		n = max(n, s.times)
	}
	return n
}

func (p *Schedule) prepare(r *result.Run) {
	for _, c := range p.cells {
		row, ok := r.Row(c.row.Name, c.cores)
		if !ok {
			r.Rows = append(r.Rows, result.Row{Name: c.row.Name, Title: c.row.Title, Cores: c.cores})
			row = &r.Rows[len(r.Rows)-1]
		}
		for _, name := range c.subjects {
			row.Entries = append(row.Entries,
				result.Entry{Name: name, Floor: measure.FloorOf(&c.row, name), Nanos: make([]float64, c.rounds)})
		}
	}
	for _, row := range p.missing {
		r.Rows = append(r.Rows, result.Row{Name: row.Name, Title: row.Title, Cores: 1})
	}
	for i := range r.Rows {
		prepareUnable(&r.Rows[i])
	}
}

// prepareUnable adds an entry with the reason for every subject that the row cannot measure.
func prepareUnable(row *result.Row) {
	found, err := workload.Find(row.Name)
	if err != nil || found.Batch || found.Differences() > 0 {
		return
	}
	names := measure.Of(&found)
	for _, peer := range peers.All() {
		names = append(names, peer.Name)
	}
	for _, name := range names {
		if why := measure.Cannot(&found, name); why != "" {
			row.Entries = append(row.Entries, result.Entry{Name: name, Cannot: why})
		}
	}
}

func rate(ctx context.Context, c cell, round int, entry func(name string) *result.Entry) {
	var results map[string]experiment.Rated
	err := child.Run(ctx, limit, c.cores, experiment.Rate,
		experiment.RateOf{Row: c.row.Name, Subjects: c.subjects, For: c.each}, &results)
	for _, name := range c.subjects {
		e, rated := entry(name), results[name]
		switch {
		case err != nil:
			e.Error = err.Error()
		case rated.Error != "":
			e.Error, e.AllowedFraction = rated.Error, rated.AllowedFraction()
		default:
			e.Nanos[round] = rated.PerOp()
			if e.Error == "" {
				e.AllowedFraction = rated.AllowedFraction()
			}
			e.Allocs = max(e.Allocs, rated.AllocsPerOp())
			e.Bytes = max(e.Bytes, rated.BytesPerOp())
		}
	}
}

func describe() []result.Peer {
	versions := result.Versions()
	var list []result.Peer
	for _, p := range peers.All() {
		list = append(list, result.Peer{Name: p.Name, Module: p.Module, Version: versions[p.Module], How: p.How,
			Package: p.Package, Cannot: p.Cannot})
	}
	return list
}

// Broken returns a line for every measurement of weir or a floor that made wrong decisions or has no result. Failures
// of peers do not fail the run.
func Broken(r *result.Run) (broken []string) {
	broken = append(broken, r.Failed...)
	for _, row := range r.Rows {
		for _, e := range row.Entries {
			if e.Error != "" && (measure.IsWeir(e.Name) || measure.IsFloor(e.Name)) {
				broken = append(broken, row.Name+": "+e.Name+": "+e.Error)
			}
		}
		if row.Found != nil && row.Found.Error != "" {
			broken = append(broken, row.Name+": records found: "+row.Found.Error)
		}
	}
	for _, e := range r.Parts {
		if e.Error != "" {
			broken = append(broken, "parts: "+e.Name+": "+e.Error)
		}
	}
	for _, l := range r.Latency {
		if l.Error != "" {
			broken = append(broken, "latency beside "+l.Beside+": "+l.Error)
		}
	}
	for _, m := range r.Memory {
		if m.Error != "" && measure.IsWeir(m.Name) {
			broken = append(broken, "memory: "+m.Error)
		}
	}
	for _, t := range r.Touched {
		if t.Error != "" && t.Huge { // because not every system lets a process choose small pages
			broken = append(broken, "memory that is touched: "+t.Error)
		}
	}
	for _, c := range r.Collect {
		if c.Error != "" && !slices.ContainsFunc(peers.All(), func(p peers.Peer) bool { return p.Name == c.Name }) {
			broken = append(broken, "gc: "+c.Name+": "+c.Error)
		}
	}
	return broken
}
