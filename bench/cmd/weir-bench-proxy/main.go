// Command weir-bench-proxy measures the cost of the limiters of weir, nginx and HAProxy. It also compares weir as a
// proxy with Go's standard proxy and with Caddy.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/weir-go/weir/bench/cmd/internal/program"
	"github.com/weir-go/weir/bench/proxy"
	"github.com/weir-go/weir/bench/proxy/server"
	"github.com/weir-go/weir/internal/atomicfile"
)

const description = `Measure what the limiter costs the proxy that it is in: weir, nginx and HAProxy,
each with its limiter and without.

wrk makes the requests, nginx answers them behind every proxy, and all of it is on this machine's loopback.

Exit status: 0 done, 80 the command line is wrong, 1 a program is missing, an answer was not what it should be, or the
work failed. Caddy alone may be missing. A missed target is not a failure.`

type command struct {
	Rounds  *int   `placeholder:"N" help:"Rounds, 1 to 1000 (default: 6)."`
	Seconds *int   `placeholder:"N" help:"Seconds of wrk for each server, mode and round, 1 to 30 (default: 3)."`
	Turns   *int   `placeholder:"N" help:"Turns of a second, 1 to 10000, of the servers that the targets compare (default: 5 for each round)."`
	Weir    string `placeholder:"PATH" help:"The weir to measure (default: the one beside this program)."`
	From    string `placeholder:"FILE" help:"Measure nothing: report what an earlier run wrote with --json."`
	JSON    string `name:"json" placeholder:"FILE" help:"Write everything that was measured."`
	Docs    string `placeholder:"FILE" help:"Put the tables into a Markdown file such as docs/benchmarks/proxy.md, between the lines that it has for them."`
}

// Run implements the command.
func (c *command) Run() error {
	run, err := c.get()
	if err != nil {
		return err
	}
	if c.JSON != "" {
		err = atomicfile.Write(c.JSON, run.Write)
	}
	if c.Docs != "" {
		err = errors.Join(err, proxy.Document(c.Docs, run))
	}
	return errors.Join(proxy.Text(os.Stdout, run), err)
}

func (c *command) get() (*proxy.Run, error) {
	if c.From == "" {
		return c.measure()
	}
	if c.Rounds != nil || c.Seconds != nil || c.Turns != nil || c.Weir != "" {
		return nil, program.NewMisuse(errors.New("--from measures nothing: leave out --rounds, --seconds, --turns and --weir"))
	}
	file, err := os.Open(c.From)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	run, err := proxy.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.From, err)
	}
	return run, nil
}

func (c *command) measure() (*proxy.Run, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	weir, err := c.weir(self)
	if err != nil {
		return nil, err
	}
	schedule := proxy.Schedule{
		Servers: servers(weir, self, os.Stderr),
		Rounds:  or(c.Rounds, 6),
		Seconds: or(c.Seconds, 3),
	}
	schedule.Turns = or(c.Turns, 5*schedule.Rounds)
	if err := schedule.Check(); err != nil {
		return nil, program.NewMisuse(err)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	run, err := schedule.Do(ctx, program.CommandLine(proxy.Command), progress(schedule))
	if errors.Is(err, context.Canceled) {
		return nil, errors.New("interrupted")
	}
	return run, err
}

func or(flag *int, otherwise int) int {
	if flag == nil {
		return otherwise
	}
	return *flag
}

// servers returns the servers to measure. A missing Caddy is left out, and only reported to the writer out. Some
// systems offer Caddy only with an upgrade of other packages.
func servers(weir, self string, out io.Writer) []*server.Server {
	all := []*server.Server{server.Weir(weir), server.WeirSilent(weir), server.Bare(self)}
	caddy := server.Caddy()
	if _, err := caddy.Program.Find(); err != nil {
		fmt.Fprintf(out, "%v; it is left out\n", err)
	} else {
		all = append(all, caddy)
	}
	return append(all, server.Nginx(), server.HAProxy())
}

func (c *command) weir(self string) (string, error) {
	if c.Weir != "" {
		return filepath.Abs(c.Weir)
	}
	return filepath.Join(filepath.Dir(self), "weir"), nil
}

// progress returns a function that writes to stderr which measurement is running.
func progress(schedule proxy.Schedule) func(what string) {
	rounds, turns := schedule.Steps()
	fmt.Fprintf(os.Stderr, "%d runs of %d s, and %d of 1 s\n", rounds, schedule.Seconds, turns)
	return func(what string) { fmt.Fprintln(os.Stderr, what) }
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == server.BareCommand {
		if err := server.ServeBare(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	program.Run(&command{}, proxy.Command, description)
}
