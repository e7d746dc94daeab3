// Command weir-bench-stores compares limiters that keep their state in Redis: `make bench-stores`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/weir-go/weir/bench/cmd/internal/program"
	"github.com/weir-go/weir/bench/markdown"
	"github.com/weir-go/weir/bench/stores"
)

const description = `Measure limiters that keep their state in Redis beside each other: redislimit, strict and leased,
redis_rate, throttled and ulule/limiter. They have a real redis-server of their own, by turns.

Exit status: 0 done, 80 the command line is wrong, 1 there is no redis-server or the work failed.`

type command struct {
	Rounds int    `placeholder:"N" default:"3" help:"Rounds, 1 to 100 (default: 3)."`
	Server string `placeholder:"PATH" default:"redis-server" help:"The server's program."`
	Docs   string `placeholder:"FILE" help:"Put the tables into a Markdown file such as docs/distributed.md, between the lines that it has for them."`
}

// Run implements the command.
func (c *command) Run() error {
	if c.Rounds < 1 || c.Rounds > 100 {
		return program.NewMisuse(errors.New("--rounds: want 1 to 100"))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	plan := stores.Plan{Cost: 2 * time.Second, Excess: 2 * time.Second, Pause: 2 * time.Second, Rounds: c.Rounds}
	results, err := stores.Run(ctx, c.Server, plan, stores.Subjects(), func(text string) { fmt.Fprintln(os.Stderr, text) })
	if err != nil {
		return err
	}
	text := stores.Markdown(results)
	if c.Docs != "" {
		err = markdown.Fill(c.Docs, "weir-bench-stores", text)
	}
	_, failed := fmt.Print(text)
	return errors.Join(err, failed)
}

func main() { program.Run(new(command), "weir-bench-stores", description) }
