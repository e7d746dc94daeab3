// Package result defines the results of a run, their file format, and summaries of several rounds.
package result

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/peers"
)

// format is increased when files in an older format can no longer be read.
const format = 1

// A Run contains everything that one run measured.
type Run struct {
	Format  int                    `json:"format"`
	Machine Machine                `json:"machine"`
	Command string                 `json:"command"`
	Started time.Time              `json:"started"`
	Took    time.Duration          `json:"took_ns"`
	Rounds  int                    `json:"rounds"`
	Rows    []Row                  `json:"rows"`
	Parts   []Entry                `json:"parts"` // parts of the floor, on 1,000 keys and one processor
	Tables  []Table                `json:"tables"`
	Memory  []Memory               `json:"memory"`
	Touched []Touched              `json:"touched"`
	Collect []Collect              `json:"collect"`
	Latency []Latency              `json:"latency"`
	Calls   []experiment.Allocated `json:"calls"`
	Peers   []Peer                 `json:"peers"`
	Absent  []peers.Absent         `json:"not_measured"`
	Failed  []string               `json:"failed,omitempty"` // sections that have no result
	Targets []Target               `json:"targets"`
}

// A Row is the result of a workload on a number of processors.
type Row struct {
	Name    string  `json:"name"`
	Title   string  `json:"title"`
	Cores   int     `json:"cores"`
	Entries []Entry `json:"entries"`
	// Found is the number of requests that found the record of their key. Only some rows have this count.
	Found *Found `json:"found,omitempty"`
}

// A Found is a count of requests, or the reason why there is no count.
type Found struct {
	experiment.Counted
	Error string `json:"error,omitempty"`
}

// An Entry is the result of one subject on a row.
type Entry struct {
	Name            string    `json:"name"`
	Floor           string    `json:"floor,omitempty"` // the floor with which it is compared
	Nanos           []float64 `json:"ns"`              // per decision, by round; 0 for a round without a result
	AllowedFraction float64   `json:"allowed_share"`
	Allocs          float64   `json:"allocs"` // objects per decision
	Bytes           float64   `json:"bytes"`  // bytes that a decision allocates
	Error           string    `json:"error,omitempty"`
	Cannot          string    `json:"cannot,omitempty"`
}

// A Table is the result of random compare-and-swap operations in a table.
type Table struct {
	Bytes     uint64    `json:"bytes"`
	Huge      bool      `json:"huge"`
	Nanos     []float64 `json:"ns"`
	HugeBytes uint64    `json:"huge_bytes"`
	Note      string    `json:"note,omitempty"`
}

// A Memory is the memory of a limiter with a million keys.
type Memory struct {
	Name string `json:"name"`
	experiment.Held
	Error  string `json:"error,omitempty"`
	Cannot string `json:"cannot,omitempty"`
}

// PerKey returns the bytes per key. It uses the growth of the process or the growth of its heap, whichever is larger.
func (m Memory) PerKey() float64 {
	if m.Keys == 0 {
		return 0
	}
	return float64(max(m.Resident, m.Heap)) / float64(m.Keys)
}

// A Touched is how much memory of a limiter for a million keys is in RAM after requests for a few keys.
type Touched struct {
	Huge bool `json:"huge"` // pages as the system gives them; otherwise only small pages
	experiment.Held
	Error string `json:"error,omitempty"`
}

// A Collect contains the times of full collections with ten million keys.
type Collect struct {
	Name  string  `json:"name"`
	Nanos []int64 `json:"ns"`
	Error string  `json:"error,omitempty"`
}

// Millis returns the median in milliseconds.
func (c Collect) Millis() float64 {
	figures := make([]float64, len(c.Nanos))
	for i, n := range c.Nanos {
		figures[i] = float64(n) / 1e6
	}
	return Summarize(figures).Median
}

// A Latency contains the times of single calls.
type Latency struct {
	Beside string `json:"beside"`
	Empty  bool   `json:"empty"`
	experiment.Delays
	Error string `json:"error,omitempty"`
}

// At returns the service and response times at a percentile of experiment.Percentiles.
func (l Latency) At(percentile float64) (service, response time.Duration, ok bool) {
	i := slices.Index(experiment.Percentiles, percentile)
	if i < 0 || i >= len(l.Service) || i >= len(l.Response) {
		return 0, 0, false
	}
	return time.Duration(l.Service[i]), time.Duration(l.Response[i]), true
}

// A Peer describes how a limiter of another project was measured.
type Peer struct {
	Name    string                   `json:"name"`
	Module  string                   `json:"module"`
	Version string                   `json:"version"`
	How     string                   `json:"how"`
	Package bool                     `json:"package"`
	Cannot  map[peers.Ability]string `json:"cannot,omitempty"`
}

// A Target is a performance target, with the measured value and the verdict.
type Target struct {
	Row      string `json:"row"`
	Target   string `json:"target"`
	Measured string `json:"measured"`
	Spread   string `json:"spread"`
	Verdict  string `json:"verdict"` // met, missed, or not measured
	Why      string `json:"why,omitempty"`
}

// Row returns the row with that name and number of cores.
func (r *Run) Row(name string, cores int) (*Row, bool) {
	for i := range r.Rows {
		if r.Rows[i].Name == name && r.Rows[i].Cores == cores {
			return &r.Rows[i], true
		}
	}
	return nil, false
}

// Entry returns the entry with that name.
func (r *Row) Entry(name string) (*Entry, bool) {
	for i := range r.Entries {
		if r.Entries[i].Name == name {
			return &r.Entries[i], true
		}
	}
	return nil, false
}

// Ratio returns a summary of a's times divided by b's, round by round. ok is false if a or b has an error, or if no
// round has both.
func (r *Row) Ratio(a, b string) (s Summary, ok bool) {
	x, okA := r.Entry(a)
	y, okB := r.Entry(b)
	if !okA || !okB || x.Error != "" || y.Error != "" {
		return s, false
	}
	s = Summarize(Ratios(x.Nanos, y.Nanos))
	return s, s.Rounds > 0
}

// Median returns the median time of a decision in nanoseconds, or 0 if there is no time.
func (e *Entry) Median() float64 {
	return Summarize(Ratios(e.Nanos, ones(len(e.Nanos)))).Median
}

func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

// Write writes the run as JSON.
func (r *Run) Write(w io.Writer) error {
	r.Format = format
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// Read reads a run that Write wrote.
func Read(from io.Reader) (*Run, error) {
	r := new(Run)
	if err := json.NewDecoder(from).Decode(r); err != nil {
		return nil, fmt.Errorf("not a run's JSON: %w", err)
	}
	if r.Format != format {
		return nil, fmt.Errorf("format %d of a run: want %d", r.Format, format)
	}
	return r, nil
}
