// Package proxy measures what a limiter costs the web server that contains the limiter. The servers are weir, nginx and
// HAProxy, each with and without its limiter, in alternating rounds.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-go/weir/bench/proxy/server"
	"github.com/weir-go/weir/bench/result"
)

// These are the bounds of a Schedule.
const (
	MostRounds  = 1000
	MostSeconds = 30 // because after a minute, the mode Refuse would admit a client again
	MostTurns   = 10 * MostRounds
)

// A Schedule describes what to measure, and how often.
type Schedule struct {
	Servers []*server.Server
	Rounds  int // 1 to MostRounds
	Seconds int // how long wrk runs in a round, 1 to MostSeconds
	Turns   int // number of turns of one second, 1 to MostTurns
}

// Check returns an error if a number is out of its range.
func (p Schedule) Check() error {
	if p.Rounds < 1 || p.Rounds > MostRounds {
		return fmt.Errorf("%d rounds: want 1 to %d", p.Rounds, MostRounds)
	}
	if p.Seconds < 1 || p.Seconds > MostSeconds {
		return fmt.Errorf("%d seconds: want 1 to %d", p.Seconds, MostSeconds)
	}
	if p.Turns < 1 || p.Turns > MostTurns {
		return fmt.Errorf("%d turns: want 1 to %d", p.Turns, MostTurns)
	}
	return nil
}

// Steps returns how many runs of wrk take p.Seconds (rounds), and how many take one second (turns).
func (p Schedule) Steps() (rounds, turns int) {
	return len(p.rows()) * p.Rounds, len(p.turned()) * p.Turns
}

// Do makes the measurements. Before each run of wrk, it calls the function before with a description of the run. It
// returns the first error, because a round without all servers is useless. When Do returns, every process that it
// started has ended.
func (p Schedule) Do(ctx context.Context, command string,
	before func(what string)) (_ *Run, err error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	r := &Run{
		Machine: result.ThisMachine(),
		Command: command,
		Started: time.Now().UTC().Truncate(time.Second),
		Rounds:  p.Rounds,
		Seconds: p.Seconds,
		Rows:    p.rows(),
	}
	if r.Versions, err = p.versions(ctx); err != nil {
		return nil, err
	}
	m, err := newMeter(ctx, p.Seconds)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	for round := range p.Rounds {
		for i := range r.Rows {
			// Every other round is reversed, so that no server always follows the same other server.
			if round%2 == 1 {
				i = len(r.Rows) - 1 - i
			}
			row := &r.Rows[i]
			before(fmt.Sprintf("round %d of %d: %s, %s", round+1, p.Rounds, row.Server.Name, row.Mode))
			measured, err := m.measure(ctx, row.Server, row.Mode)
			if err != nil {
				return nil, fmt.Errorf("%s, %s, round %d: %w", row.Server.Name, row.Mode, round+1, err)
			}
			row.Rounds = append(row.Rounds, measured)
		}
	}
	if r.Turns, err = p.takeTurns(ctx, m, before); err != nil {
		return nil, err
	}
	r.Took = time.Since(r.Started).Round(time.Second)
	return r, nil
}

// rows returns the rows, with the compared rows of a server next to each other.
func (p Schedule) rows() []Row {
	var rows []Row
	for _, s := range p.Servers {
		for _, mode := range server.Modes {
			if slices.Contains(s.Modes, mode) {
				rows = append(rows, Row{Server: s, Mode: mode})
			}
		}
	}
	return rows
}

// versions returns the versions of all programs. If programs are missing, the error names all of them.
func (p Schedule) versions(ctx context.Context) (map[string]string, error) {
	programs := []server.Program{server.Wrk}
	for _, s := range p.Servers {
		programs = append(programs, s.Program)
	}
	versions := map[string]string{}
	var missing []error
	for _, program := range programs {
		name := filepath.Base(program.Name)
		if _, ok := versions[name]; ok || program.Version == nil {
			continue
		}
		var err error
		if versions[name], err = program.FindVersion(ctx); err != nil {
			missing = append(missing, err)
		}
	}
	return versions, errors.Join(missing...)
}

type meter struct {
	wrk, dir, script string
	upstream         *server.Process
	seconds          int
}

func newMeter(ctx context.Context, seconds int) (*meter, error) {
	m := &meter{seconds: seconds}
	var err error
	if m.wrk, err = server.Wrk.Find(); err != nil {
		return nil, err
	}
	if m.dir, err = os.MkdirTemp("", "weir-bench-proxy-"); err != nil {
		return nil, err
	}
	m.script = filepath.Join(m.dir, "clients.lua")
	err = os.WriteFile(m.script, []byte(clientScript()), 0o600)
	if err == nil {
		m.upstream, err = server.StartUpstream(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(m.dir))
	}
	return m, nil
}

func (m *meter) close() error {
	_, err := m.upstream.Stop()
	return errors.Join(err, os.RemoveAll(m.dir))
}

func (m *meter) measure(ctx context.Context, s *server.Server, mode server.Mode) (Round, error) {
	process, err := s.Start(ctx, mode, m.upstream.Address, clientHeader)
	if err != nil {
		return Round{}, err
	}
	measured, err := runWrk(ctx, m.wrk, m.script, "http://"+process.Address+"/", m.seconds)
	cpu, stopped := process.Stop()
	if err := errors.Join(err, stopped); err != nil {
		return Round{}, err
	}
	round := Round{measured, cpu}
	return round, round.check(mode)
}
