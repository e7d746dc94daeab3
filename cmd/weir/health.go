package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

type healthCommand struct {
	Admin   string        `arg:"" optional:"" default:"127.0.0.1:8081" placeholder:"ADDRESS" help:"The administrator's listener, HOST:PORT or a URL (default: ${default})."`
	Timeout time.Duration `default:"5s" placeholder:"DURATION" help:"How long to wait for the answer (default: ${default})."`
}

// Help is what "weir health --help" says beyond the flags.
func (*healthCommand) Help() string {
	return `Asks /readyz of the administrator's listener. Exit status 0 if weir answers that it is ready, 1 if it does not answer
or says why not: it stops. An image without a shell and curl needs no more than weir itself:

    HEALTHCHECK CMD ["/weir", "health"]`
}

// Run implements the command.
func (c *healthCommand) Run() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	address := c.Admin
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/readyz", nil)
	if err != nil {
		return err
	}
	// A proxy of the environment has no business with a question to oneself.
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return fmt.Errorf("no answer from %s: %w", c.Admin, err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if err != nil {
		return fmt.Errorf("the answer from %s broke off: %w", c.Admin, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", c.Admin, resp.Status, strings.TrimSpace(string(said)))
	}
	_, err = fmt.Println(strings.TrimSpace(string(said)))
	return err
}
