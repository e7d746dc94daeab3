// Command weir-bench-proxy measures what the limiter costs the proxy that it is in: weir, nginx and HAProxy, each with
// its limiter and without; and what weir costs as a proxy, beside Go's own and Caddy.
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

const name = "weir-bench-proxy"

const description = `Measure what the limiter costs the proxy that it is in: weir, nginx and HAProxy,
each with its limiter and without.

wrk makes the requests, nginx answers them behind every proxy, and all of it is on this machine's loopback.

Exit status: 0 done, 80 the command line is wrong, 1 a program is missing, an answer was not what it should be, or the
work failed. Caddy alone may be missing. A missed target is not a failure.`

// command is the command line.
type command struct {
	Rounds  int    `default:"6" placeholder:"N" help:"Rounds, 1 to 1000 (default: 6)."`
	Seconds int    `default:"3" placeholder:"N" help:"Seconds of wrk for each server, mode and round, 1 to 30 (default: 3)."`
	Weir    string `placeholder:"PATH" help:"The weir to measure (default: the one beside this program)."`
	JSON    string `name:"json" placeholder:"FILE" help:"Write everything that was measured."`
}

// Run implements the command.
func (c *command) Run() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	weir, err := c.weir(self)
	if err != nil {
		return err
	}
	schedule := proxy.Schedule{
		Servers: servers(weir, self, os.Stderr),
		Rounds:  c.Rounds,
		Seconds: c.Seconds,
	}
	if err := schedule.Check(); err != nil {
		return program.NewMisuse(err)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	run, err := schedule.Do(ctx, program.CommandLine(name), progress(schedule))
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}
	if c.JSON != "" {
		err = atomicfile.Write(c.JSON, run.Write)
	}
	return errors.Join(proxy.Text(os.Stdout, run), err)
}

// servers returns what is measured. Caddy is left out where it is missing, which out says: there are systems that give
// it only with an upgrade of other packages.
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

// weir returns the path of the weir to measure.
func (c *command) weir(self string) (string, error) {
	if c.Weir != "" {
		return filepath.Abs(c.Weir)
	}
	return filepath.Join(filepath.Dir(self), "weir"), nil
}

// progress returns what says on stderr what is measured.
func progress(schedule proxy.Schedule) func(*server.Server, server.Mode, int) {
	fmt.Fprintf(os.Stderr, "%d runs of %d s\n", schedule.Steps(), schedule.Seconds)
	return func(s *server.Server, mode server.Mode, round int) {
		fmt.Fprintf(os.Stderr, "round %d of %d: %s, %s\n", round+1, schedule.Rounds, s.Name, mode)
	}
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == server.BareCommand {
		if err := server.ServeBare(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	program.Run(&command{}, name, description)
}
