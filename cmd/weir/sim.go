package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/atomicfile"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/sim"
)

type simCommand struct {
	Nodes     int           `default:"4" help:"Machines that share the limit (default: ${default})."`
	Keys      int           `default:"1" help:"Number of keys, each with the limit (default: ${default})."`
	Zipf      float64       `default:"1" help:"With several keys, the k-th has k^-ZIPF times the requests of the first (default: ${default})."`
	Limit     engine.Rate   `default:"1000/s" placeholder:"N/PERIOD" help:"The limit of each key, such as 100/s or 10/m (default: ${default})."`
	Burst     uint64        `default:"200" help:"Tokens of a full bucket (default: ${default})."`
	Load      float64       `default:"10" help:"The load on the first key, as a multiple of the limit (default: ${default})."`
	Shares    string        `placeholder:"A/B/..." help:"The parts of the traffic that the nodes get, such as 90/5/3/2 (default: the same for each)."`
	Cost      []uint64      `placeholder:"N,..." help:"Tokens that a request costs; several costs occur equally often (default: 1)."`
	RTT       time.Duration `name:"rtt" default:"1ms" help:"Round trip to the store (default: ${default})."`
	Jitter    time.Duration `default:"0s" help:"By how much round trips vary, up or down (default: ${default})."`
	Loss      float64       `default:"0" help:"The part of the store's replies that is lost, 0 to 1 (default: ${default})."`
	Timeout   time.Duration `default:"50ms" help:"The time after which a reply counts as lost (default: ${default})."`
	Down      string        `placeholder:"FROM..TO" help:"When the store cannot be reached, such as 2s..3s (default: never)."`
	DownEvery time.Duration `placeholder:"DURATION" help:"The time after which it cannot be reached again, for the same time (default: never)."`
	CutOff    int           `placeholder:"N" help:"How many nodes cannot reach it then, while the others can (default: all)."`
	Parts     int           `name:"partitions" default:"1" help:"Partitions of a cluster, which can fail independently; 1 for a single server (default: ${default})."`
	DownParts int           `name:"down-partitions" placeholder:"N" help:"How many partitions cannot be reached then (default: all)."`
	OnLoss    string        `name:"on-loss" enum:"share,closed" default:"share" help:"What a node does if the store does not answer: share admits its part of the limit, closed refuses (default: ${default})."`
	Skew      time.Duration `default:"0s" help:"The difference between the clocks of the first and the last node (default: ${default})."`
	Overdraft uint64        `default:"8" help:"Tokens of a key that a node may spend before the store has charged them (default: ${default})."`
	Duration  time.Duration `default:"10s" help:"Simulated time (default: ${default})."`
	Seed      uint64        `default:"1" help:"The seed of the random numbers (default: ${default})."`
	Strategy  []string      `default:"strict,lease,settle-later-200ms,settle-later-50ms,settle-later-10ms" help:"The ways to share the limit: strict, lease, settle-later-INTERVAL (default: ${default})."`
	JSON      bool          `name:"json" help:"Print one JSON object instead of a table."`
	HTML      string        `name:"html" placeholder:"FILE" help:"Also write a page with a chart."`
	SVG       string        `name:"svg" placeholder:"FILE" help:"Also write the chart as a picture."`
}

func (*simCommand) Help() string {
	return `Requests arrive at random, on average as often as --load says, and every strategy gets the same ones. Beside each
runs the ideal, one limiter that hears of all requests at once: what it admits and the strategy does not is refused
wrongly.

strict asks the store about each request. lease spends on the node what the store has charged before, by the code
of the nodes themselves. settle-later admits by what the node last heard of the others, and tells them every interval.

Nodes make calls to the store as the real ones do: at once while fewer than eight are under way, else with up to 64
questions that came meanwhile; and up to 128 full ones. After 200 ms without an answer a node does without the store and tries it four times a
second, and decides by its share of the limit meanwhile. --loss loses the replies of single calls, after the store has
carried them out: the share decides about those requests, too.

With one key at ten times the limit, and the same for 1,000 nodes and a million keys:

    weir sim
    weir sim --nodes 1000 --keys 1000000 --burst 4000
    weir sim --shares 90/5/3/2 --loss 0.05 --html sim.html
    weir sim --down 2s..4s --strategy strict,lease
    weir sim --keys 640 --load 2 --partitions 64 --down 2s..4s --down-partitions 21 --strategy strict,lease`
}

func (c *simCommand) Run() error {
	scenario, err := c.scenario()
	if err != nil {
		return err
	}
	bar := newBar(os.Stderr, 1, "simulating")
	report, err := sim.Run(context.Background(), scenario, func(p sim.Progress) { bar.fraction(p.Doing, p.Done) })
	bar.finish()
	if err != nil {
		return err
	}
	if err := writeSimFile(c.HTML, report, writeSimPage); err != nil {
		return err
	}
	if err := writeSimFile(c.SVG, report, writeSimPicture); err != nil {
		return err
	}
	if c.JSON {
		e := json.NewEncoder(os.Stdout)
		return e.Encode(report)
	}
	return c.write(report, os.Stdout)
}

func (c *simCommand) write(r *sim.Report, out io.Writer) error {
	if _, err := fmt.Fprintf(out, "%s, burst %d, on %d nodes at %g times that, round trip %v\n\n", r.Rate, r.Burst,
		r.Nodes, r.Load, c.RTT); err != nil {
		return err
	}
	return r.WriteTable(out)
}

func writeSimFile(name string, r *sim.Report, write func(io.Writer, *sim.Report) error) error {
	if name == "" {
		return nil
	}
	return atomicfile.Write(name, func(w io.Writer) error { return write(w, r) })
}

func (c *simCommand) scenario() (sim.Scenario, error) {
	s := sim.Scenario{
		Nodes: c.Nodes, Keys: c.Keys, Zipf: c.Zipf, Rate: c.Limit, Burst: c.Burst, Load: c.Load, Time: c.Duration,
		RTT: c.RTT, Jitter: c.Jitter, Loss: c.Loss, Timeout: c.Timeout, Skew: c.Skew, Overdraft: c.Overdraft, Seed: c.Seed,
		Costs: c.Cost, AwayEvery: c.DownEvery, CutOff: c.CutOff, Partitions: c.Parts, AwayPartitions: c.DownParts,
		OnLoss: map[string]redislimit.FailurePolicy{"share": redislimit.FailShare, "closed": redislimit.FailClosed}[c.OnLoss],
	}
	if c.Down != "" {
		from, to, ok := strings.Cut(c.Down, "..")
		var errFrom, errTo error
		s.Away.From, errFrom = time.ParseDuration(from)
		s.Away.To, errTo = time.ParseDuration(to)
		if !ok || errFrom != nil || errTo != nil {
			return s, limit.Misuse("--down %s: want two times of the simulation, such as 2s..3s", c.Down)
		}
	}
	if c.Shares != "" {
		for _, text := range strings.Split(c.Shares, "/") {
			share, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return s, limit.Misuse("--shares %s: %q is not a number: want one for each node, such as 90/5/3/2", c.Shares, text)
			}
			s.Traffic = append(s.Traffic, share)
		}
	}
	for _, name := range c.Strategy {
		strategy, err := sim.ParseStrategy(name)
		if err != nil {
			return s, limit.Misuse("--strategy: %w", err)
		}
		s.Strategies = append(s.Strategies, strategy)
	}
	if err := s.Check(); err != nil {
		return s, limit.Misuse("%w", err)
	}
	return s, nil
}
