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
	Watch   bool   `help:"Look again every second until interrupted: redraw a terminal, write a line anywhere else."`
	JSON    bool   `name:"json" help:"Print one JSON object; with --watch one a line."`
	Copy    string `placeholder:"NEW" xor:"what" help:"Write a copy of what the keys owe to a new file, while the table is in use."`
	Restore string `placeholder:"COPY" xor:"what" predictor:"file" help:"Make each key owe at least as much as in a copy, while the table is in use."`
	Convert string `placeholder:"NEW" xor:"what" help:"Write what the keys owe to a new file of another size or options: see below."`

	MaxKeys  *int   `placeholder:"N" help:"With --convert: the keys that the new file is made for."`
	Shards   *int   `placeholder:"N" help:"With --convert: the shards of the new file, a power of two."`
	Overflow string `placeholder:"evict" help:"With --convert: what happens to a new key without room: evict, refuse or admit."`

	File string `arg:"" predictor:"file" help:"The file of a table: one in the folder of state, or the path of engine.Shared."`
}

func (*tableCommand) Help() string {
	return `Says what is in a table that processes of this machine share, while they use it: its limit and options, how many slots
are taken and how many keys owe something, what sweeps did, and which processes are attached. Nothing is written, and
nobody waits for it. The file belongs to the user that runs weir: run this command as that user, or as root. What root
restores or converts belongs to that user again.

Try it:

    weir table --watch /dev/shm/weir/api-d41bba485df2b642.v8.weir

--copy, --restore and --convert carry over what the keys owe. Never copy another file over one in use (cp): that ends
every process which has it. To give a rule of weir serve other max_keys or another overflow without full buckets, look
up the name of its next file with weir check, and convert the present one to that name before the reload.`
}

func (c *tableCommand) Run() (err error) {
	if c.Convert == "" && (c.MaxKeys != nil || c.Shards != nil || c.Overflow != "") {
		return errors.New("--max-keys, --shards and --overflow are for --convert")
	}
	if c.Copy != "" || c.Restore != "" || c.Convert != "" {
		return c.asOwner(c.transfer)
	}
	if !c.Watch {
		return c.show(os.Stdout, c.fullWriter())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	seconds := time.NewTicker(time.Second)
	defer seconds.Stop()
	return c.watch(ctx, os.Stdout, term.IsTerminal(int(os.Stdout.Fd())), seconds.C)
}

// transfer copies, restores or converts the file, as the flags say. The parameter restore is the copy to restore from.
func (c *tableCommand) transfer(restore string) error {
	target, action := c.Copy+c.Convert, "copied to "+c.Copy+c.Convert
	var err error
	if c.Restore != "" {
		target, action = c.File, "restored from "+c.Restore
		err = engine.RestoreShared(restore, c.File)
	} else {
		var options []engine.Option
		if options, err = c.options(); err == nil {
			err = engine.CopyShared(c.File, target, options...)
		}
	}
	if err != nil {
		return err
	}
	t, err := engine.ReadShared(target)
	if err == nil {
		fmt.Printf("%s: %s: %d keys indebted\n", c.File, action, t.Indebted)
	}
	return err
}

func (c *tableCommand) options() (options []engine.Option, err error) {
	if c.MaxKeys != nil {
		options = append(options, engine.MaxKeys(*c.MaxKeys))
	}
	if c.Shards != nil {
		options = append(options, engine.Shards(*c.Shards))
	}
	if c.Overflow != "" {
		policy := engine.Evict
		for policy.String() != c.Overflow {
			if policy++; policy > engine.Admit {
				return nil, fmt.Errorf("--overflow %s: want evict, refuse or admit", c.Overflow)
			}
		}
		options = append(options, engine.Overflow(policy))
	}
	return options, nil
}

// A tableWriter writes the data of a table.
type tableWriter func(w io.Writer, table *tableSnapshot) error

// fullWriter returns the function that writes everything about a table, as text or as JSON.
func (c *tableCommand) fullWriter() tableWriter {
	if c.JSON {
		return writeTableJSON
	}
	return writeTableText
}

// watch shows the table at once and at every tick. It ends when the context ends or the file is missing.
func (c *tableCommand) watch(ctx context.Context, w io.Writer, terminal bool, ticks <-chan time.Time) error {
	write := c.fullWriter()
	switch {
	case c.JSON:
	case terminal:
		write = redrawTable
	default:
		write = writeTableLine
	}
	for {
		if err := c.show(w, write); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
		}
	}
}

func (c *tableCommand) show(w io.Writer, write tableWriter) error {
	table, err := engine.ReadShared(c.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s", c.File)
	case err != nil:
		return fmt.Errorf("%s: %w", c.File, errors.Unwrap(err)) // without repeating the path
	}
	return write(w, &tableSnapshot{c.File, table})
}
