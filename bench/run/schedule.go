// Package run schedules what to measure, runs it round by round in separate processes, and collects the results.
package run

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/workload"
)

// Sections are the measurements that are not rows.
const (
	Parts   = "parts"
	Tables  = "tables"
	Memory  = "memory"
	Collect = "gc"
	Latency = "latency"
	Calls   = "allocations"
)

// Selectable returns the names of the rows and sections that can be chosen.
func Selectable() []string {
	return append(workload.Names(), Parts, Tables, Memory, Collect, Latency, Calls)
}

// Effort determines how much is measured.
type Effort int

const (
	Quick   Effort = iota // the targets, and three peers
	Default               // every peer on the rows that are set up quickly, five peers on the others
	Full                  // everything
)

// efforts contains the numbers for each Effort.
var efforts = [...]struct {
	rounds     int
	slow       int           // number of rounds for rows that take longer to set up than to measure
	each       time.Duration // how long a cell is measured
	latency    time.Duration
	largePeers int // number of rounds in which peers are measured on rows of ten million keys
}{
	Quick:   {3, 3, 80 * time.Millisecond, time.Second, 0},
	Default: {20, 6, 50 * time.Millisecond, 3 * time.Second, 0},
	Full:    {20, 10, 150 * time.Millisecond, 15 * time.Second, 3},
}

type cell struct {
	row      workload.Row
	cores    int
	subjects []string
	each     time.Duration
	rounds   int // the cell is measured in this many rounds, from the run's first round on
}

// A Schedule describes what to measure, and how often.
type Schedule struct {
	Rounds   int
	slow     int // number of rounds for slow rows
	effort   Effort
	cells    []cell
	missing  []workload.Row // rows that cannot be loaded here
	sections map[string]bool
}

// NewSchedule returns a schedule for the named rows and sections, or for all of them if names is empty. The number
// rounds is 1 to 1000, or 0 for the effort's number of rounds. Other numbers and unknown names are errors.
func NewSchedule(effort Effort, names []string, rounds int) (*Schedule, error) {
	if rounds < 0 || rounds > 1000 {
		return nil, fmt.Errorf("%d rounds: want 1 to 1000", rounds)
	}
	p := &Schedule{Rounds: rounds, slow: rounds, effort: effort, sections: map[string]bool{}}
	if rounds == 0 {
		p.Rounds, p.slow = efforts[effort].rounds, efforts[effort].slow
	}
	if len(names) == 0 {
		names = Selectable()
	}
	for _, name := range names {
		if !slices.Contains(Selectable(), name) {
			_, err := workload.Find(name) // this error suggests a row
			return nil, fmt.Errorf("%w, %s", err, strings.Join(Selectable()[len(workload.Names()):], ", "))
		}
		row, err := workload.Find(name)
		if err != nil {
			p.sections[name] = true
			continue
		}
		if row.Missing() != "" {
			p.missing = append(p.missing, row)
			continue
		}
		for _, cores := range p.coresOf(&row) {
			p.addRow(row, cores)
		}
		for _, v := range row.Variants() {
			if p.measures(&v) {
				p.addRow(v, 1)
			}
		}
	}
	return p, nil
}

// measures reports whether the effort leaves time for a variant of a row. The default effort measures only variants
// with a single difference: another order of keys, or any difference on rows of 1,000 or 100,000 keys.
func (p *Schedule) measures(v *workload.Row) bool {
	isSingle := v.Differences() == 1
	return p.effort == Full ||
		p.effort == Default && isSingle && (v.Draw == workload.Zipf || v.Keys == 1000 || v.Keys == 100_000)
}

func (p *Schedule) coresOf(row *workload.Row) []int {
	total := runtime.NumCPU()
	switch {
	case row.Hot:
		return []int{total}
	case row.Batch, p.effort == Quick && (row.Large() || row.Draw != workload.InTurn):
		return []int{1}
	}
	var cores []int
	for n := 1; n < total; n++ {
		// The numbers of processors are powers of two, or all numbers if the effort leaves time.
		if p.effort == Full || n&(n-1) == 0 && (p.effort == Default || n == 1) {
			cores = append(cores, n)
		}
	}
	return append(cores, total)
}

// addRow adds the cells of a row. If Together is true, weir and the floors share a process.
func (p *Schedule) addRow(row workload.Row, cores int) {
	each := efforts[p.effort].each
	subjects := slices.DeleteFunc(measure.Of(&row), func(name string) bool { return measure.Cannot(&row, name) != "" })
	if row.Together() {
		p.cells = append(p.cells, cell{row, cores, subjects, each, p.roundsOf(&row)})
	} else {
		for _, name := range subjects {
			p.cells = append(p.cells, cell{row, cores, []string{name}, each, p.roundsOf(&row)})
		}
	}
	for _, name := range p.peersOf(&row, cores) {
		rounds := p.roundsOf(&row)
		if row.Large() {
			rounds = min(rounds, efforts[p.effort].largePeers)
		}
		p.cells = append(p.cells, cell{row, cores, []string{name}, each, rounds})
	}
}

// roundsOf returns the number of rounds for a row. Six is the smallest number for which a summary has an interval.
func (p *Schedule) roundsOf(row *workload.Row) int {
	if row.Keys > 10_000 && !row.Shown || row.Returning {
		return p.slow
	}
	return p.Rounds
}

// shortRunPeers contains the peers for a short run: the usual do-it-yourself limiters, and the fastest libraries.
var shortRunPeers = []string{"diy GCRA, xsync map", peers.DIYCounter, "diy GCRA, 256 mutex shards", "x/time/rate, xsync map",
	"sethvargo/go-limiter", "tailscale util/limiter"}

// longSetupPeers contains the peers for rows with a long setup: two peers whose memory grows, a peer that sweeps, and a
// peer with bounded memory.
var longSetupPeers = []string{"diy GCRA, xsync map", "x/time/rate, xsync map", "sethvargo/go-limiter", "tailscale util/limiter"}

func (p *Schedule) peersOf(row *workload.Row, cores int) (names []string) {
	for _, peer := range peers.All() {
		quick := row.Name == "allowed-1k" || row.Name == "denied-1k"
		unkeyed := peer.Cannot[peers.Keys] != "" && row.Keys == 1
		chosen := slices.Contains(shortRunPeers, peer.Name)
		switch {
		case peer.Name == peers.DIYCounter && p.effort < Full && (row.Draw != workload.InTurn || row.Refused):
		case row.Busy && peer.Name == "throttled, LRU": // throttled is one of the two peers with bounded memory
			names = append(names, peer.Name)
		case row.Batch || row.Aged || row.Differences() > 0 || measure.Cannot(row, peer.Name) != "":
		case row.Returning && (row.Keys == 1_000_000 && p.effort < Full || !chosen): // not with all others
		case row.Keys > 100_000 && p.effort == Default && !slices.Contains(longSetupPeers, peer.Name):
		case p.effort == Full,
			p.effort == Default && (cores == 1 && (quick || unkeyed) || chosen && !row.Large()),
			p.effort == Quick && quick && chosen && cores == 1:
			names = append(names, peer.Name)
		}
	}
	return names
}

// Steps returns how many pieces of work there are.
func (p *Schedule) Steps() int {
	n := 0
	for _, c := range p.cells {
		n += c.rounds
	}
	for _, s := range p.steps() {
		n += s.times
	}
	return n
}

// Estimate returns the approximate duration of the schedule, based on a machine with two cores.
func (p *Schedule) Estimate() time.Duration {
	var total float64 // seconds
	for _, c := range p.cells {
		setup := 0.05
		peer := !measure.IsWeir(c.subjects[0]) && !measure.IsFloor(c.subjects[0])
		switch {
		case c.row.Large() && peer:
			setup = 16
		case c.row.Large():
			setup = 2.5 + 1.5*float64(len(c.subjects))
		case c.row.Returning:
			setup += float64(c.row.Keys) * 3e-6
		case c.row.Draw == workload.Poisson:
			setup = 0.35
		case c.row.Draw == workload.Zipf:
			setup = 0.7
		case c.row.Draw == workload.Mixed:
			setup = 0.4
		case c.row.Draw == workload.Fresh:
			setup = 1.1
		}
		if peer && c.row.Keys >= 1_000_000 && !c.row.Large() {
			setup *= 2.5
		}
		total += float64(c.rounds) * (setup + c.each.Seconds()*float64(len(c.subjects)))
	}
	for _, s := range p.steps() {
		total += float64(s.times) * s.cost.Seconds()
	}
	return time.Duration(total * float64(time.Second)).Round(time.Second)
}
