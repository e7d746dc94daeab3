package run

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/weir-go/weir/bench/child"
	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/bench/workload"
)

type step struct {
	times int // how often the step runs
	cost  time.Duration
	do    func(ctx context.Context, r *result.Run, round int)
}

const limit = 5 * time.Minute

func (p *Schedule) steps() (list []step) {
	for i, c := range p.cells {
		first := !slices.ContainsFunc(p.cells[:i], func(earlier cell) bool { return earlier.row.Name == c.row.Name })
		if first && (c.row.Returning || c.row.Everyday()) {
			list = append(list, foundStep(c.row))
		}
	}
	if p.sections[Parts] {
		for i, name := range measure.Parts() {
			list = append(list, p.partStep(i, name))
		}
	}
	if p.sections[Tables] {
		i := 0
		for _, size := range []uint64{16 << 20, 256 << 20, 2 << 30} {
			for _, huge := range []bool{true, false} {
				list = append(list, p.tableStep(i, size, huge))
				i++
			}
		}
	}
	if p.sections[Memory] {
		for _, name := range p.memorySubjects() {
			list = append(list, memoryStep(name))
		}
		for _, huge := range []bool{true, false} {
			list = append(list, touchedStep(huge))
		}
	}
	if p.sections[Collect] {
		names := []string{experiment.Empty, measure.WeirTSC}
		if p.effort > Quick {
			names = append(names, "diy GCRA, xsync map")
		}
		if p.effort == Full {
			names = p.memorySubjects()
			names = append(names, experiment.Empty)
		}
		for _, name := range names {
			list = append(list, collectStep(name))
		}
	}
	if p.sections[Latency] {
		for _, load := range []string{experiment.Quiet, experiment.Sweep, experiment.Flood} {
			for _, empty := range []bool{true, false} {
				list = append(list, latencyStep(load, empty, efforts[p.effort].latency))
			}
		}
	}
	if p.sections[Calls] {
		list = append(list, step{1, 200 * time.Millisecond, func(ctx context.Context, r *result.Run, _ int) {
			if err := child.Run(ctx, limit, 1, experiment.Calls, struct{}{}, &r.Calls); err != nil {
				r.Failed = append(r.Failed, "allocations: "+err.Error())
			}
		}})
	}
	return list
}

func (p *Schedule) memorySubjects() []string {
	names := []string{measure.WeirTSC}
	for i, peer := range peers.All() {
		if peer.Cannot[peers.Keys] == "" && peer.Name != peers.DIYCounter && (p.effort > Quick || i < 2) {
			names = append(names, peer.Name)
		}
	}
	return names
}

func (p *Schedule) partStep(i int, name string) step {
	each := efforts[p.effort].each
	return step{p.Rounds, each + 30*time.Millisecond, func(ctx context.Context, r *result.Run, round int) {
		if round == 0 {
			r.Parts = append(r.Parts, result.Entry{Name: name, Nanos: make([]float64, p.Rounds)})
		}
		e := &r.Parts[i]
		row := workload.Row{Name: "allowed-1k", Keys: 1000}
		if e.Cannot = measure.Cannot(&row, name); e.Cannot != "" {
			return
		}
		rate(ctx, cell{row: row, cores: 1, subjects: []string{name}, each: each}, round,
			func(string) *result.Entry { return e })
	}}
}

// tableRounds is the number of rounds for a table. The number is small, because a table's figures only explain other
// figures.
const tableRounds = 3

func (p *Schedule) tableStep(i int, size uint64, huge bool) step {
	return step{tableRounds, 300*time.Millisecond + time.Duration(size)/4,
		func(ctx context.Context, r *result.Run, round int) {
			if round == 0 {
				r.Tables = append(r.Tables, result.Table{Bytes: size, Huge: huge, Nanos: make([]float64, tableRounds)})
			}
			t, got := &r.Tables[i], experiment.Tabled{}
			if err := child.Run(ctx, limit, 1, experiment.Table,
				experiment.TableOf{Bytes: size, Huge: huge, For: 200 * time.Millisecond}, &got); err != nil {
				t.Note = err.Error()
				return
			}
			t.Nanos[round], t.HugeBytes = got.PerOp, got.HugeBytes
			switch {
			case got.HugeError != "":
				t.Note = got.HugeError
			case huge && got.HugeBytes < size:
				t.Note = fmt.Sprintf("only %d of %d MiB are in huge pages", got.HugeBytes>>20, size>>20)
			case !huge && got.HugeBytes > 0:
				t.Note = fmt.Sprintf("%d MiB are in huge pages all the same", got.HugeBytes>>20)
			}
		}}
}

func memoryStep(name string) step {
	return step{1, 2 * time.Second, func(ctx context.Context, r *result.Run, _ int) {
		m := result.Memory{Name: name}
		if err := child.Run(ctx, limit, runtime.NumCPU(), experiment.Memory, experiment.MemoryOf{Subject: name},
			&m.Held); err != nil {
			m.Error = err.Error()
		}
		r.Memory = append(r.Memory, m)
	}}
}

// foundStep counts the requests of a row that find their record. The count does not depend on the processors.
func foundStep(row workload.Row) step {
	cost := 100*time.Millisecond + time.Duration(row.Keys)*5*time.Microsecond
	return step{1, cost, func(ctx context.Context, r *result.Run, _ int) {
		found := new(result.Found)
		if err := child.Run(ctx, limit, 1, experiment.Found, experiment.FoundOf{Row: row.Name}, &found.Counted); err != nil {
			found.Error = err.Error()
		}
		for i := range r.Rows {
			if r.Rows[i].Name == row.Name {
				r.Rows[i].Found = found
			}
		}
	}}
}

func touchedStep(huge bool) step {
	return step{1, 100 * time.Millisecond, func(ctx context.Context, r *result.Run, _ int) {
		t := result.Touched{Huge: huge}
		if err := child.Run(ctx, limit, 1, experiment.Touched, experiment.TouchedOf{Huge: huge}, &t.Held); err != nil {
			t.Error = err.Error()
		}
		r.Touched = append(r.Touched, t)
	}}
}

func collectStep(name string) step {
	cost := 12 * time.Second
	if name == experiment.Empty {
		cost = 100 * time.Millisecond
	} else if measure.IsWeir(name) {
		cost = 4 * time.Second
	}
	return step{1, cost, func(ctx context.Context, r *result.Run, _ int) {
		c, got := result.Collect{Name: name}, experiment.Collected{}
		if err := child.Run(ctx, limit, runtime.NumCPU(), experiment.Collect, experiment.CollectOf{Subject: name},
			&got); err != nil {
			c.Error = err.Error()
		}
		c.Nanos = got.Nanos
		r.Collect = append(r.Collect, c)
	}}
}

func latencyStep(load string, empty bool, d time.Duration) step {
	return step{1, d + time.Second, func(ctx context.Context, r *result.Run, _ int) {
		l := result.Latency{Beside: load, Empty: empty}
		if err := child.Run(ctx, limit, runtime.NumCPU(), experiment.Latency,
			experiment.LatencyOf{Beside: load, Empty: empty, For: d}, &l.Delays); err != nil {
			l.Error = err.Error()
		}
		r.Latency = append(r.Latency, l)
	}}
}
