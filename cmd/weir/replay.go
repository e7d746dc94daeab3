package main

import (
	"fmt"
	"io"
	"os"

	"github.com/weir-go/weir/cmd/weir/internal/accesslog"
	"github.com/weir-go/weir/cmd/weir/internal/limit"
	"github.com/weir-go/weir/cmd/weir/internal/replay"
)

type replayCommand struct {
	limit.Flags
	rulesFlags
	Compare bool   `help:"Replay through ${compared} side by side, all at the limit of --limit, and print what each would have done."`
	Key     string `default:"ip" enum:"ip" placeholder:"ip" help:"What identifies a client: a log has the address only, IPv6 by its /64 (default: ${default})."`
	Top     *uint  `placeholder:"N" help:"Most refused keys to show (default: 10)."`
	JSON    bool   `name:"json" help:"Print one JSON object instead of a table, with all refused keys unless --compare is on."`
	File    string `arg:"" predictor:"file" help:"The access log, plain or gzip; - for standard input."`
}

// Help is what "weir replay --help" says beyond the flags.
func (*replayCommand) Help() string {
	return `The log is in the Common or Combined Log Format. Its requests go through the limiter in the order of the log, each
at the latest time stamp seen so far, because logs are slightly out of order.

Lines that are not in the format, or longer than 1 MiB, are skipped and counted, and the first few are shown with
the reason. A log without any request, and one that breaks off, is an error.

Try it:

    weir replay --limit 10/m --burst 10 /var/log/nginx/access.log
    weir replay --limit 10/m --algorithm sliding-window /var/log/nginx/access.log
    weir replay --limit 10/m --compare /var/log/nginx/access.log

With --rules each request goes through all rules of the file that match it, all or nothing, as weir serve does it. A
log holds the client, method, path, status, referer and user agent of a request: rules that match or count by
anything else are reported as such and take no part. --suggest looks for the lowest rate for each burst that
refuses at most so many percent of a rule's requests, and recommends one; each rule by itself, as if there
were no others.

    weir replay --rules weir.yaml --html report.html /var/log/nginx/access.log
    weir replay --rules weir.yaml --suggest 0.1 /var/log/nginx/access.log
    weir replay --suggest 1 /var/log/nginx/access.log`
}

// defaultTop is how many refused keys are shown where nothing is said.
const defaultTop = 10

// replayed is what there is to print about a log.
type replayed struct {
	limit       string // that it was held against
	log         *replay.Log
	note        string // doubts about the figures
	table, json func(io.Writer) error
	rules       *replay.RulesReport // of a replay through rules, instead of table and json
}

// Run implements the command.
func (c *replayCommand) Run() error {
	work := c.one
	switch {
	case c.rulesFlags.asked():
		work = c.throughRules
	case c.Compare:
		work = c.all
	}
	run, err := work()
	if err != nil {
		return err
	}
	source, err := accesslog.Open(c.File)
	if err != nil {
		return err
	}
	defer source.Close()

	input, finish := io.Reader(source), func() {}
	if !c.JSON {
		bar := newByteBar(os.Stderr, source.Size, "replaying")
		input, finish = bar.reader(source), bar.finish
	}
	got, err := run(accesslog.NewLines(input))
	finish()
	if err != nil {
		return fmt.Errorf("%s: %w", source.Name, err)
	}
	if got.rules != nil {
		return c.writeRules(source.Name, got.rules, os.Stdout)
	}
	return c.write(source.Name, got, os.Stdout, os.Stderr)
}

// work is a replay that only waits for its log.
type work func(*accesslog.Lines) (replayed, error)

// one returns the replay through one algorithm.
func (c *replayCommand) one() (work, error) {
	policy, err := c.Policy()
	if err != nil {
		return nil, err
	}
	top := uint(defaultTop)
	if c.Top != nil {
		top = min(*c.Top, 1<<31-1)
	}
	return func(lines *accesslog.Lines) (replayed, error) {
		r, err := replay.Run(policy, c.Limiter, lines)
		if err != nil {
			return replayed{}, err
		}
		table := func(w io.Writer) error { return r.WriteTable(w, int(top)) }
		return replayed{policy.String(), &r.Log, r.EvictionNote(), table, r.WriteJSON, nil}, nil
	}, nil
}

// all returns the replay through all of them.
func (c *replayCommand) all() (work, error) {
	if c.Top != nil {
		return nil, limit.Misuse("--top %d: --compare shows no keys: leave one of the two out", *c.Top)
	}
	contest, err := c.Comparison()
	if err != nil {
		return nil, err
	}
	return func(lines *accesslog.Lines) (replayed, error) {
		r, err := replay.Compare(contest, c.Limiter, lines)
		if err != nil {
			return replayed{}, err
		}
		return replayed{c.Limit.String(), &r.Log, r.EvictionNote(), r.WriteTable, r.WriteJSON, nil}, nil
	}, nil
}

// write prints the result for the log of that name. The JSON has no place for doubts about its
// figures, so they go to notes.
func (c *replayCommand) write(name string, r replayed, out, notes io.Writer) error {
	if !c.JSON {
		if _, err := fmt.Fprintf(out, "%s at %s, by %s\n\n", name, r.limit, c.Key); err != nil {
			return err
		}
		return r.table(out)
	}
	if r.log.Skipped > 0 {
		fmt.Fprintf(notes, "weir: lines skipped: %d, the first is %s\n", r.log.Skipped, r.log.Reasons[0])
	}
	if r.note != "" {
		fmt.Fprintf(notes, "weir: %s\n", r.note)
	}
	return r.json(out)
}
