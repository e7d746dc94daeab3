package proxy

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir/bench/proxy/server"
)

// turnTime is the length of a turn in seconds, the shortest time that wrk accepts.
const turnTime = 1

// A turner is a server that runs all the time, but gets requests only in its turns.
type turner struct {
	row     *Row
	process *server.Process
}

// The method turned returns the rows that targets compare, without results. The turns of these rows are short, because
// other load on the machine changes within seconds.
func (p Schedule) turned() (rows []Row) {
	for _, row := range p.rows() {
		for _, t := range targets {
			if name := (rowName{row.Server.Name, row.Mode}); name == t.a || name == t.b {
				rows = append(rows, row)
				break
			}
		}
	}
	return rows
}

// takeTurns measures the rows that targets compare, in turns. Every second pass is in reverse order. All servers run
// all the time, so processor time excludes their start and end.
func (p Schedule) takeTurns(ctx context.Context, m *meter, before func(what string)) (rows []Row, err error) {
	rows = p.turned()
	turners := make([]turner, len(rows))
	for i := range rows {
		t := &turners[i]
		t.row = &rows[i]
		if t.process, err = t.row.Server.Start(ctx, t.row.Mode, m.upstream.Address, clientHeader); err != nil {
			return nil, err
		}
		defer func() {
			_, stopped := t.process.Stop()
			err = errors.Join(err, stopped)
		}()
	}
	for turn := range p.Turns {
		before(fmt.Sprintf("turn %d of %d", turn+1, p.Turns))
		for i := range turners {
			if turn%2 == 1 {
				i = len(turners) - 1 - i
			}
			t := &turners[i]
			measured, err := t.turn(ctx, m)
			if err != nil {
				return nil, fmt.Errorf("%s, %s, turn %d: %w", t.row.Server.Name, t.row.Mode, turn+1, err)
			}
			t.row.Rounds = append(t.row.Rounds, measured)
		}
	}
	return rows, nil
}

func (t *turner) turn(ctx context.Context, m *meter) (Round, error) {
	begin, err := t.process.CPU()
	if err != nil {
		return Round{}, err
	}
	measured, err := runWrk(ctx, m.wrk, m.script, "http://"+t.process.Address+"/", turnTime)
	if err != nil {
		return Round{}, err
	}
	end, err := t.process.CPU()
	round := Round{measured, end - begin}
	return round, errors.Join(err, round.check(t.row.Mode))
}
