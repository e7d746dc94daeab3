package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weir-go/weir/bench/proxy/server"
	"github.com/weir-go/weir/bench/result"
)

// A Run contains everything that one run measured.
type Run struct {
	Machine  result.Machine    `json:"machine"`
	Versions map[string]string `json:"versions"` // versions of the programs
	Command  string            `json:"command"`
	Started  time.Time         `json:"started"`
	Took     time.Duration     `json:"took_ns"`
	Rounds   int               `json:"rounds"`
	Seconds  int               `json:"seconds"` // how long one run of wrk lasts
	Rows     []Row             `json:"rows"`
	Turns    []Row             `json:"turns"` // each row has one round per turn
}

// A Row is the result of one server in one mode.
type Row struct {
	Server *server.Server `json:"server"`
	Mode   server.Mode    `json:"mode"`
	Rounds []Round        `json:"rounds"`
}

// A Round is one run of wrk against a server. The server is a fresh process, or a running process that has its turn.
type Round struct {
	Load
	CPU time.Duration `json:"cpu_ns"` // processor time of the server, from its start to its end, or during its turn
}

// Write writes the run as JSON.
func (r *Run) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Read reads a run that Write wrote.
func Read(from io.Reader) (*Run, error) {
	var r Run
	if err := json.NewDecoder(from).Decode(&r); err != nil {
		return nil, fmt.Errorf("not a run's JSON: %w", err)
	}
	for i, row := range r.Rows {
		if row.Server == nil || len(row.Rounds) != r.Rounds {
			return nil, fmt.Errorf("row %d of %d has no server, or not %d rounds", i+1, len(r.Rows), r.Rounds)
		}
	}
	for i, row := range r.Turns {
		if row.Server == nil || len(row.Rounds) != len(r.Turns[0].Rounds) {
			return nil, fmt.Errorf("row %d of %d that took turns has no server, or another number of turns", i+1, len(r.Turns))
		}
	}
	return &r, nil
}

func find(rows []Row, name rowName) *Row {
	i := slices.IndexFunc(rows, func(row Row) bool { return row.Server.Name == name.server && row.Mode == name.mode })
	if i < 0 {
		return nil
	}
	return &rows[i]
}

func (r *Run) turns() int {
	if len(r.Turns) == 0 {
		return 0
	}
	return len(r.Turns[0].Rounds)
}

func (row *Row) figures(of func(Round) float64) []float64 {
	figures := make([]float64, len(row.Rounds))
	for i, round := range row.Rounds {
		figures[i] = of(round)
	}
	return figures
}

func (row *Row) sum(of func(Round) float64) result.Summary { return result.Summarize(row.figures(of)) }

func perSecond(r Round) float64 { return r.PerSecond }
func p50(r Round) float64       { return float64(r.P50) }
func p99(r Round) float64       { return float64(r.P99) }

func cpu(r Round) float64 { return float64(r.CPU) / float64(r.Requests) }

// check returns an error if the admitted and refused requests do not match the mode.
func (r Round) check(mode server.Mode) error {
	switch {
	case r.Failed > 0:
		return fmt.Errorf("%d of %d requests failed", r.Failed, r.Requests)
	case r.Requests == 0:
		return fmt.Errorf("no request was answered")
	case mode != server.Refuse && r.Refused > 0:
		return fmt.Errorf("%d of %d requests were refused: want none", r.Refused, r.Requests)
	case mode != server.Refuse:
		return nil
	}
	// The first request of every client is admitted, but wrk does not count requests in progress at its end.
	const least, most = server.Once*clients - wrkConnections, server.Once * clients
	if admitted := r.Requests - r.Refused; admitted < least || admitted > most {
		return fmt.Errorf("%d of %d requests were admitted: want %d to %d", admitted, r.Requests, least, most)
	}
	return nil
}
