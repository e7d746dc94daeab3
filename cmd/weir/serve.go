package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/cmd/internal/listen"
	"github.com/weir-go/weir/cmd/internal/logs"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/serve"
	"github.com/weir-go/weir/internal/version"
)

type serveCommand struct {
	File   string `arg:"" optional:"" predictor:"file" help:"The rule file (YAML). Without it, the flags define the limit."`
	Config string `placeholder:"FILE" help:"The rule file, as a flag."`
	serveFlags

	given givenFlags
}

func (*serveCommand) Help() string {
	return `With a rule file, "weir serve weir.yaml", everything stands there, and none of the flags below goes with it: listeners,
upstreams, trusted proxies and several rules. docs/configuration.md describes it, and "weir check" says what one means.
The file is read again when it changes and on SIGHUP: connections stay, and buckets keep what is in them. A file with
mistakes changes nothing. docs/operations.md says how to run weir in production.

Without one, each client has a bucket of tokens, or with --algorithm a window; a request takes one of what is in it.
Who has none left is answered 429 with Retry-After. An upstream that does not answer gives 502, one that is too slow
504, and neither is counted as refused.

--key ip is the address of the connection (IPv6: its /64). No X-Forwarded-For or other header is trusted, because
anybody can send one: behind a load balancer all clients are one, unless --trusted-proxy names it.

--key header:NAME is the value of that header, or the address where the header is missing. Use a header that
clients cannot make up, such as one checked in front of weir: a new value is a new bucket.

SIGINT or SIGTERM lets the requests under way finish; the second one does not. SIGUSR2 starts the program anew with the
same listening sockets, and ends this process when the new one serves: an upgrade that refuses no connection.

Try it, the second line in another terminal:

    weir serve --limit 10/m --algorithm sliding-window
    curl -i http://127.0.0.1:8080/

and look at http://127.0.0.1:8081/ in a browser.`
}

func (c *serveCommand) Run(given givenFlags) (err error) {
	c.given = given
	inherited, err := listen.Inherit()
	if err != nil {
		return err
	}
	defer func() { inherited.Tell(err) }()
	file, load, err := c.file()
	if err != nil {
		return err
	}
	// If standard error is closed, writing to it must return an error. It must not end the program.
	signal.Ignore(syscall.SIGPIPE)
	log := logs.New(os.Stderr, file.Log)
	defer log.Close()
	for _, w := range file.Warnings() {
		log.Warn(w)
	}
	defer loadBallast()()
	reload := make(chan os.Signal, 1) // before this line, SIGHUP would end the program
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	upgrade := make(chan os.Signal, 1)
	notifyUpgrade(upgrade)
	defer signal.Stop(upgrade)
	// When the log says that the server listens, another program may send a signal at once. So signals are handled from
	// here on.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // so that a second signal ends the program at once
	server, err := serve.Start(serve.Config{
		File: file, Load: load, Version: version.Of(version.Info()), Log: log.Logger, SetLog: log.SetLevel,
		Inherited: inherited,
	})
	if bad := (*serve.LimiterError)(nil); errors.As(err, &bad) && load == nil {
		return limit.Misuse("%w", bad.Err) // the mistake is in --max-keys
	}
	if err != nil {
		return err
	}
	if ctx.Err() == nil {
		inherited.Tell(nil)
	} else { // otherwise, the previous process continues
		inherited.Tell(errors.New("it was stopped before it served"))
	}
	go func() {
		for range reload {
			_ = server.Reload() // Reload has logged the error
		}
	}()
	go func() {
		for range upgrade {
			go func() { _ = server.HandOver(ctx) }() // HandOver has logged the error
		}
	}()
	return server.Run(ctx)
}

// file returns the rule file, and a function that reads it again. Without a rule file, it returns the file that the
// flags describe.
func (c *serveCommand) file() (*rulefile.File, func() (*rulefile.File, error), error) {
	name, err := c.name()
	if err != nil {
		return nil, nil, err
	}
	if name == "" {
		file, err := c.asFile()
		return file, nil, err
	}
	unused := slices.Concat(limitFlags, []string{"listen", "admin", "upstream", "key", "trusted-proxy"})
	if err := c.given.checkUnused(definedBy(name), unused...); err != nil {
		return nil, nil, err
	}
	file, err := loadRules(name)
	return file, func() (*rulefile.File, error) { return rulefile.Load(name) }, err
}
