package main

import (
	"fmt"
	"io"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/cmd/internal/replay"
)

type replayCommand struct {
	limit.Flags
	rulesFlags
	usageFlags
	Compare bool     `help:"Compare ${compared}, all with the limit of --limit, and print what each would have done."`
	Key     string   `default:"ip" enum:"ip" placeholder:"ip" help:"What identifies a client: a log only has the address, for IPv6 its /64 (default: ${default})."`
	Top     *uint    `placeholder:"N" help:"Most refused keys to show (default: 10)."`
	JSON    bool     `name:"json" help:"Print one JSON object instead of a table, with all refused keys unless --compare is on."`
	Client  string   `placeholder:"HEADER" help:"The header field that has the client, such as X-Forwarded-For; its last address is used."`
	Format  string   `placeholder:"NAME" predictor:"format" help:"The format of the log, if it is not detected: ${formats}."`
	Files   []string `arg:"" name:"file" predictor:"file" help:"Access logs, plain or compressed with gzip, bzip2, xz or zstd; patterns are expanded; - for standard input."`

	given givenFlags
}

func writeNotes(l *replay.Log, notes io.Writer) {
	if l.Skipped > 0 {
		fmt.Fprintf(notes, "weir: lines skipped: %d, the first is %s\n", l.Skipped, l.Reasons[0])
	}
	if l.ProxyNote != "" {
		fmt.Fprintf(notes, "weir: %s\n", l.ProxyNote)
	}
}

func (*replayCommand) Help() string {
	return `The format of the log is detected: Apache's and nginx's common and combined, Apache's vhost_combined, JSON of nginx,
Caddy, Traefik and Envoy, HAProxy's httplog, AWS ALB, ELB, S3 and CloudFront, Google Cloud's load balancers, IIS, the
default text of Envoy and Istio, the access log of weir serve, and any of these after a syslog header or from a
container. A log that is in no known format, or in two, is an error: --format says which it is.

Its requests go through the limiter in the order of their time stamps: servers stamp a request when it comes and log it
when it is over, so the lines are sorted. Several files are merged, in whatever order they are given. If a line is more
than 16,384 lines from its place the log is sorted on disk (in TMPDIR); so is a copy of standard input kept. The answer
says how many lines were out of order and what sorting changes.

Lines that are not in the format, or longer than 1 MiB, are skipped and counted, and the first few are shown with
the reason. So are lines whose date is far from those of the 16 lines before and the 16 behind it: half an hour later, or
a day earlier, than all of them. A log without any request, and one that breaks off, is an error.

Try it:

    weir replay --limit 10/m --burst 10 /var/log/nginx/access.log
    weir replay --limit 10/m --algorithm sliding-window /var/log/nginx/access.log
    weir replay --limit 10/m --compare /var/log/nginx/access.log*
    journalctl -u haproxy -o short-iso | weir replay --limit 10/m --format haproxy -

With --rules each request goes through all rules of the file that match it, all or nothing, as weir serve does it. Rules
that match or count by something that the log does not hold are reported as such and take no part: every format has the
client, method, path and status of a request, some have the host, and some header fields. --suggest finds the limit that
refuses only clients that ask for far more than others: twice the lowest that refuses anything to at most one in a
hundred. --refuse-clients says how many may be refused anything instead. Each rule is taken by itself, as if there were
no others. Some five bytes for each request and rule are kept in a temporary file (in TMPDIR).

    weir replay --rules weir.yaml --html report.html /var/log/nginx/access.log
    weir replay --rules weir.yaml --refuse-clients 0.1% /var/log/nginx/access.log
    weir replay --suggest /var/log/nginx/access.log

With --usage the files say what requests to language models cost, and --limit is of tokens. For each estimate by which
tokens are held before the cost is known, the answer says what would have been refused. The worst case is not among
them: it is made of a request's body, which no usage log has.

    weir replay --usage --limit 100000/m --suggest usage.jsonl`
}

const defaultTop = 10

type replayResult struct {
	limit       string // the limit that was applied to the log
	log         *replay.Log
	note        string // doubts about the figures
	table, json func(io.Writer) error
	rules       *replay.RulesReport // for a replay through rules; used instead of table and json
}

// checkPage returns an error if the page would replace a file that the command reads, such as for --html *.log.
func (c *replayCommand) checkPage() error {
	page, err := os.Stat(c.HTML)
	if c.HTML == "" || err != nil || !page.Mode().IsRegular() {
		return nil
	}
	for _, pattern := range append([]string{c.Rules}, c.Files...) {
		names, _ := filepath.Glob(pattern) // an error is reported when the logs are opened
		for _, name := range append(names, pattern) {
			if read, err := os.Stat(name); err == nil && os.SameFile(page, read) {
				return limit.Misuse("--html %s: the command reads this file: name another one", c.HTML)
			}
		}
	}
	return nil
}

func (c *replayCommand) Run(given givenFlags) error {
	c.given = given
	if err := c.checkPage(); err != nil {
		return err
	}
	if err := c.checkUsage(); err != nil {
		return err
	}
	if c.Usage {
		return c.replayUsage(os.Stdout, os.Stderr)
	}
	prepare := c.prepareSingle
	switch {
	case c.rulesFlags.isSet():
		prepare = c.prepareRules
	case c.Compare:
		prepare = c.prepareComparison
	}
	run, err := prepare()
	if err != nil {
		return err
	}
	if formats := accesslog.Formats(); c.Format != "" && !slices.Contains(formats, c.Format) {
		return limit.Misuse("--format %s: want %s", c.Format, strings.Join(formats, ", "))
	}
	log, err := accesslog.Open(c.Files, c.Format)
	if err != nil {
		return err
	}
	defer log.Close()
	if c.Client != "" {
		if err := log.ClientFrom(textproto.CanonicalMIMEHeaderKey(c.Client)); err != nil {
			return fmt.Errorf("--client %s: %s: %w", c.Client, log.Name(), err)
		}
	}

	finish := func() {}
	if !c.JSON {
		bar := newByteBar(os.Stderr, log.Size(), "reading")
		activity := ""
		log.Watch(func(next string, read int64) {
			if next != activity {
				activity = next
				bar.Describe(activity)
			}
			_ = bar.Set64(read)
		})
		finish = bar.finish
	}
	result, err := run(log)
	finish()
	if err != nil {
		return fmt.Errorf("%s: %w", log.Name(), err)
	}
	name := fmt.Sprintf("%s (%s)", log.Name(), log.Format())
	if result.rules != nil {
		return c.writeRules(name, result.rules, os.Stdout, os.Stderr)
	}
	return c.write(name, result, os.Stdout, os.Stderr)
}

// A replayFunc is a replay that lacks only its log.
type replayFunc func(*accesslog.Log) (replayResult, error)

func (c *replayCommand) prepareSingle() (replayFunc, error) {
	policy, err := c.Policy()
	if err != nil {
		return nil, err
	}
	top := uint(defaultTop)
	if c.Top != nil {
		top = min(*c.Top, 1<<31-1)
	}
	return func(log *accesslog.Log) (replayResult, error) {
		r, err := replay.Run(policy, c.Limiter, log)
		if err != nil {
			return replayResult{}, err
		}
		table := func(w io.Writer) error { return r.WriteTable(w, int(top)) }
		return replayResult{policy.String(), &r.Log, r.EvictionNote(), table, r.WriteJSON, nil}, nil
	}, nil
}

func (c *replayCommand) prepareComparison() (replayFunc, error) {
	if c.Top != nil {
		return nil, limit.Misuse("--top %d: --compare shows no keys: leave one of the two out", *c.Top)
	}
	comparison, err := c.Comparison()
	if err != nil {
		return nil, err
	}
	return func(log *accesslog.Log) (replayResult, error) {
		r, err := replay.Compare(comparison, c.Limiter, log)
		if err != nil {
			return replayResult{}, err
		}
		return replayResult{c.Limit.String(), &r.Log, r.EvictionNote(), r.WriteTable, r.WriteJSON, nil}, nil
	}, nil
}

// write prints the result of a replay of a log. In JSON there is no place for doubts about the numbers, so write prints
// the doubts to notes.
func (c *replayCommand) write(name string, r replayResult, out, notes io.Writer) error {
	if !c.JSON {
		if _, err := fmt.Fprintf(out, "%s at %s, by %s\n\n", name, r.limit, c.Key); err != nil {
			return err
		}
		return r.table(out)
	}
	writeNotes(r.log, notes)
	if r.note != "" {
		fmt.Fprintf(notes, "weir: %s\n", r.note)
	}
	return r.json(out)
}
