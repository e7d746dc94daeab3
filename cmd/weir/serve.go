package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/weir-go/weir/cmd/weir/internal/limit"
	"github.com/weir-go/weir/cmd/weir/internal/serve"
)

type serveCommand struct {
	Listen   serve.Address   `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Where to listen; port 0 takes a free one (default: ${default})."`
	Upstream *serve.Upstream `placeholder:"URL" help:"The server to pass requests to. Without it a built-in echo answers."`
	limit.Flags
	Key serve.KeySource `default:"ip" placeholder:"ip|header:NAME" help:"What identifies a client (default: ${default})."`
}

// Help is what "weir serve --help" says beyond the flags.
func (*serveCommand) Help() string {
	return `Each client has a bucket of tokens, or with --algorithm a window; a request takes one of what is in it. Who has none
left is answered 429 with Retry-After.
An upstream that does not answer gives 502, and that request is not counted as refused.

--key ip is the address of the connection. No X-Forwarded-For or other header is believed, because anybody can
send one: behind a load balancer all clients are one.

--key header:NAME is the value of that header, or the address where the header is missing. Use a header that
clients cannot make up, such as one checked in front of weir: a new value is a new bucket.

Try it, the second line in another terminal:

    weir serve --limit 10/m --algorithm sliding-window
    curl -i http://127.0.0.1:8080/`
}

// Run implements the command.
func (c *serveCommand) Run() error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	policy, err := c.Policy()
	if err != nil {
		return err
	}
	limiter, err := c.Limiter(policy)
	if err != nil {
		return err
	}
	defer limiter.Close()
	server, err := serve.Listen(serve.Config{
		Listen: c.Listen, Upstream: c.Upstream, Key: c.Key, Limiter: limiter, Log: log,
	})
	if err != nil {
		return err
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once

	upstream := "built-in echo"
	if c.Upstream != nil {
		upstream = c.Upstream.String()
	}
	log.Info("listening", "url", server.URL(), "upstream", upstream,
		"policy", policy, "key", c.Key, "max_keys", c.MaxKeys)
	return server.Run(ctx)
}
