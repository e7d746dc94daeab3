package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/weir-go/weir/engine"
)

type tableCommand struct {
	Watch bool   `help:"Look again every second until interrupted: redraw a terminal, write a line anywhere else."`
	JSON  bool   `name:"json" help:"Print one JSON object; with --watch one a line."`
	File  string `arg:"" predictor:"file" help:"The file of a table: one in the folder of state, or the path of engine.Shared."`
}

// Help is what "weir table --help" says beyond the flags.
func (*tableCommand) Help() string {
	return `Says what is in a table that processes of this machine share, while they use it: its limit and options, how many slots
are taken and how many keys owe something, what sweeps did, and which processes are attached. Nothing is written, and
nobody waits for it. The file belongs to the user that runs weir, and so must this command.

Try it:

    weir table --watch /dev/shm/weir/api-d41bba485df2b642.v2.weir`
}

// Run implements the command.
func (c *tableCommand) Run() (err error) {
	t, err := engine.OpenSharedTable(c.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s", c.File)
	case err != nil:
		return fmt.Errorf("%s: %w", c.File, errors.Unwrap(err)) // without the name of the function
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if !c.Watch {
		return c.show(t, os.Stdout, c.whole())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	seconds := time.NewTicker(time.Second)
	defer seconds.Stop()
	return c.watch(ctx, t, os.Stdout, term.IsTerminal(int(os.Stdout.Fd())), seconds.C)
}

// A writing writes what was seen of a file.
type writing func(w io.Writer, seen *seenTable) error

// whole is how the command writes everything that it knows.
func (c *tableCommand) whole() writing {
	if c.JSON {
		return writeTableJSON
	}
	return writeTableText
}

// watch shows the table now and at every tick, until the context ends.
func (c *tableCommand) watch(ctx context.Context, t *engine.SharedTable, w io.Writer, terminal bool, ticks <-chan time.Time) error {
	write := c.whole()
	switch {
	case c.JSON:
	case terminal:
		write = redrawTable
	default:
		write = writeTableLine
	}
	for {
		if err := c.show(t, w, write); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
		}
	}
}

// show looks at the table once.
func (c *tableCommand) show(t *engine.SharedTable, w io.Writer, write writing) error {
	stats, err := t.Stats()
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	return write(w, &seenTable{c.File, t.Header(), stats})
}
