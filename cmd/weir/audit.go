package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/audit"
	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/internal/atomicfile"
)

type auditCommand struct {
	URL         string        `arg:"" optional:"" placeholder:"URL" help:"The URL of the server, with the path to request."`
	Log         []string      `name:"log" placeholder:"FILE" predictor:"file" help:"Find the limit from access logs and their statuses instead."`
	Method      string        `default:"GET" help:"The method of the requests (default: ${default})."`
	Header      []string      `short:"H" placeholder:"'NAME: VALUE'" help:"A header field of all requests, such as a key."`
	Requests    int           `default:"1500" help:"The largest number of requests (default: ${default})."`
	Time        time.Duration `default:"60s" help:"How long to look for the limit (default: ${default})."`
	Refused     []int         `placeholder:"STATUS" help:"The status of refusals, if it is not 429, 503, 403, 420 or 509; in a log, if it is not 429."`
	TLS         tlsFlags      `embed:""`
	Budget      budgetFlags   `embed:""`
	JSON        bool          `name:"json" help:"Print one JSON object instead of text."`
	SVG         string        `name:"svg" placeholder:"FILE" help:"Write a picture of the requests over the limit that was found, too."`
	IRunThisOne bool          `name:"i-run-this-server" help:"Audit a server that is neither on this machine nor on a private network."`
}

func (*auditCommand) Help() string {
	return `Sends a server requests in patterns for about a minute: a burst, gaps, single requests and all that there is.
Every kind of limit is fitted to what the server decided, and the one that explains most is printed, with how sure that
is, whether Retry-After and the RateLimit fields are true, what has a bucket of its own, and the lines of a rule file by
which weir serve has the same limit.

An audit is a load: the server refuses this address meanwhile. It names itself in User-Agent, sends no more than
--requests, and stops when the server answers 5xx that is no refusal, or does not answer. Only servers on loopback and
private addresses are audited unless --i-run-this-server.

With --budget the URL is a gateway that counts the tokens of language models, and the audit is both its client and the
model behind it: it finds out what each answer was charged with, and prints which pitfalls of docs/budgets.md the
gateway has. {n} in a --header is the number of a key, each of which has a budget of --tokens of its own.

Exit status: 0 nothing to look at, 2 something to look at, 80 the command line is wrong, 1 the audit failed.

Try it:

    weir serve --limit 10/s --burst 20 &
    weir audit http://127.0.0.1:8080/
    weir audit --json http://127.0.0.1:8080/login
    weir audit --log /var/log/nginx/access.log
    weir audit --budget -H 'X-Team: team-{n}' http://127.0.0.1:8000/`
}

// These flags have no effect in some of the audits.
var (
	auditOfLogUnused         = []string{"method", "header", "requests", "time", "insecure", "ca", "i-run-this-server"}
	auditOfBudgetUnused      = []string{"method", "requests", "time", "refused"}
	auditWithoutBudgetUnused = []string{"model-at", "model", "tokens", "settle"}
)

func (c *auditCommand) check(given givenFlags) error {
	switch {
	case (c.URL == "") == (len(c.Log) == 0):
		return limit.Misuse("weir audit wants a URL or --log FILE: one of the two")
	case c.Budget.Budget && c.URL == "":
		return limit.Misuse("--budget wants the URL of a gateway, and no log")
	case c.Budget.Budget && c.SVG != "":
		return limit.Misuse("--budget has no picture: want no --svg")
	case c.Requests < 50 || c.Requests > 100_000:
		return limit.Misuse("--requests %d: want 50 to 100,000", c.Requests)
	case c.Time < 5*time.Second || c.Time > time.Hour:
		return limit.Misuse("--time %v: want 5s to 1h", c.Time)
	}
	for _, s := range c.Refused {
		if s < 300 || s > 599 {
			return limit.Misuse("--refused %d: want 300 to 599", s)
		}
	}
	if c.Budget.Budget {
		return given.checkUnused("--budget decides this itself: leave one of the two out", auditOfBudgetUnused...)
	}
	if err := given.checkUnused("only --budget uses it: leave it out", auditWithoutBudgetUnused...); err != nil || c.URL != "" {
		return err
	}
	return given.checkUnused("with --log no request is sent: leave one of the two out", auditOfLogUnused...)
}

func (c *auditCommand) Run(given givenFlags) error {
	if err := c.check(given); err != nil {
		return err
	}
	var report auditReport
	var faults int
	draw := func() error { return nil }
	switch {
	case c.Budget.Budget:
		found, err := c.auditGateway()
		if err != nil {
			return err
		}
		report, faults = found, found.Faults
	default:
		found, err := c.auditLog()
		if found == nil && err == nil {
			found, err = c.auditServer()
		}
		if err != nil {
			return err
		}
		report, faults = found, found.Faults
		if c.SVG != "" {
			draw = func() error { return atomicfile.Write(c.SVG, found.WriteSVG) }
		}
	}
	write := report.WriteText
	if c.JSON {
		write = report.WriteJSON
	}
	if err := errors.Join(write(os.Stdout), draw()); err != nil {
		return err
	}
	if faults > 0 {
		return somethingToLookAt(faults)
	}
	return nil
}

type auditReport interface {
	WriteText(io.Writer) error
	WriteJSON(io.Writer) error
}

// auditLog returns nil if the audit sends requests to a server.
func (c *auditCommand) auditLog() (*audit.Report, error) {
	if len(c.Log) == 0 {
		return nil, nil
	}
	log, err := accesslog.Open(c.Log, "")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return audit.FromLog(log, c.Refused)
}

func (c *auditCommand) auditServer() (*audit.Report, error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	target, err := c.target(ctx)
	if err != nil {
		return nil, err
	}
	request := audit.Request{Method: c.Method, Target: target.URL.RequestURI()}
	if request.Fields, err = c.fields(); err != nil {
		return nil, err
	}
	if strings.ContainsAny(c.Method, " \r\n") || c.Method == "" {
		return nil, limit.Misuse("--method %q: want a word", c.Method)
	}
	client, closeAll := audit.NewClient(target)
	defer closeAll()
	options := audit.Options{Requests: c.Requests, Time: c.Time, Refused: c.Refused}
	var finish func()
	options.Progress, finish = c.progress()
	defer finish()
	return audit.Run(ctx, client, request, target, options)
}

func (c *auditCommand) target(ctx context.Context) (t audit.Target, err error) {
	if t, err = audit.Resolve(ctx, c.URL, c.IRunThisOne); err != nil {
		return t, err
	}
	t.Insecure = c.TLS.Insecure
	t.Roots, err = c.TLS.roots()
	return t, err
}

func (c *auditCommand) fields() (fields [][2]string, err error) {
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.ContainsAny(h, "\r\n") {
			return nil, limit.Misuse("--header %q: want 'Name: value'", h)
		}
		fields = append(fields, [2]string{strings.TrimSpace(name), strings.TrimSpace(value)})
	}
	return fields, nil
}

// progress returns a function that reports the progress, and a function that ends the reports. With the flag --json,
// the first function is nil.
func (c *auditCommand) progress() (func(string, float64), func()) {
	if c.JSON {
		return nil, func() {}
	}
	bar := newBar(os.Stderr, 1000, "audit")
	return bar.fraction, bar.finish
}

// somethingToLookAt is how many findings a maintainer should look at. It is also an error with the exit status 2.
type somethingToLookAt int

func (n somethingToLookAt) Error() string { return fmt.Sprintf("findings to look at: %d", int(n)) }

func (somethingToLookAt) ExitCode() int { return 2 }
