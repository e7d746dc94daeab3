package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/weir-go/weir/bench/cmd/internal/program"
	"github.com/weir-go/weir/bench/report"
	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/bench/run"
	"github.com/weir-go/weir/bench/target"
	"github.com/weir-go/weir/internal/atomicfile"
)

type command struct {
	Quick  bool     `xor:"effort" help:"Measure in some two minutes: the targets and a few peers, three rounds."`
	Full   bool     `xor:"effort" help:"Measure everything: every peer on every row. Takes an hour and a half."`
	Rows   []string `placeholder:"LIST" help:"Measure only these: rows, or the sections parts, tables, memory, gc, latency, allocations. A wrong name lists them all."`
	Rounds int      `placeholder:"N" help:"Rounds, 1 to 1000, instead of 3, 20 or 20, and 3, 6 or 10 on rows of many keys."`
	From   string   `placeholder:"FILE" help:"Measure nothing: report what an earlier run wrote with --json."`
	JSON   string   `name:"json" placeholder:"FILE" help:"Write everything that was measured."`
	HTML   string   `name:"html" placeholder:"FILE" help:"Write a page with charts: one file, no network."`
	SVG    string   `name:"svg" placeholder:"DIR" help:"Write the charts of docs/benchmarks.md."`
	Docs   string   `placeholder:"FILE" help:"Put the tables into a Markdown file such as docs/benchmarks/figures.md, between the lines that it has for them."`
	Short  string   `placeholder:"FILE" help:"Put what a stranger looks for into a Markdown file such as docs/benchmarks.md, between such lines."`
	Also   []string `placeholder:"FILES" help:"With --short: runs of other machines, whose tables stand below."`
}

// Run implements the command.
func (c *command) Run() error {
	if len(c.Also) > 0 && c.Short == "" {
		return program.NewMisuse(errors.New("--also adds runs to the file of --short, which is missing"))
	}
	runs := make([]*result.Run, len(c.Also))
	for i, path := range c.Also {
		var err error
		if runs[i], err = read(path); err != nil {
			return err
		}
	}
	r, err := c.get()
	if err != nil {
		return err
	}
	r.Targets = target.Evaluate(r)
	if err := report.Text(os.Stdout, r); err != nil {
		return err
	}
	if err := c.write(r, runs); err != nil {
		return err
	}
	if broken := run.Broken(r); len(broken) > 0 {
		return fmt.Errorf("wrong or missing results:\n  %s", strings.Join(broken, "\n  "))
	}
	return nil
}

func read(path string) (*result.Run, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := result.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func (c *command) get() (*result.Run, error) {
	if c.From != "" {
		if c.Quick || c.Full || c.Rounds != 0 || len(c.Rows) > 0 {
			return nil, program.NewMisuse(errors.New("--from measures nothing: leave out --quick, --full, --rounds and --rows"))
		}
		return read(c.From)
	}
	effort := run.Default
	if c.Quick {
		effort = run.Quick
	} else if c.Full {
		effort = run.Full
	}
	schedule, err := run.NewSchedule(effort, c.Rows, c.Rounds)
	if err != nil {
		return nil, program.NewMisuse(err)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	fmt.Fprintf(os.Stderr, "%d rounds, %d processes, about %v\n", schedule.Rounds, schedule.Steps(),
		schedule.Estimate().Round(5*time.Second))
	bar := newBar(schedule.Steps(), os.Stderr)
	// If the bar cannot be drawn, the run continues.
	defer func() { _ = bar.Finish() }()
	r, err := schedule.Do(ctx, program.CommandLine("weir bench"), func() { _ = bar.Add(1) })
	if errors.Is(err, context.Canceled) {
		return nil, errors.New("interrupted")
	}
	return r, err
}

func (c *command) write(r *result.Run, also []*result.Run) error {
	for path, write := range map[string]func(io.Writer) error{
		c.JSON: r.Write,
		c.HTML: func(w io.Writer) error { return report.HTML(w, r) },
	} {
		if path == "" {
			continue
		}
		if err := atomicfile.Write(path, write); err != nil {
			return err
		}
	}
	if c.Docs != "" {
		if err := report.Document(c.Docs, r); err != nil {
			return err
		}
	}
	if c.Short != "" {
		if err := report.Short(c.Short, r, also...); err != nil {
			return err
		}
	}
	if c.SVG == "" {
		return nil
	}
	return report.WriteCharts(c.SVG, r)
}
