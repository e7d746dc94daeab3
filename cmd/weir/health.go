package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/unixsocket"
)

type healthCommand struct {
	Admin   string        `arg:"" optional:"" default:"127.0.0.1:8081" placeholder:"ADDRESS" help:"The administrator's listener, HOST:PORT, unix:/path or a URL (default: ${default})."`
	Timeout time.Duration `default:"5s" placeholder:"DURATION" help:"How long to wait for the answer (default: ${default})."`
}

func (*healthCommand) Help() string {
	return `Asks /readyz of the administrator's listener. Exit status 0 if weir answers that it is ready, 1 if it does not answer
or says why not: it stops. An image without a shell and curl needs no more than weir itself:

    HEALTHCHECK CMD ["/weir", "health"]`
}

func (c *healthCommand) Run() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true} // without a proxy, because the request is to this machine
	address := c.Admin
	if path, ok := unixsocket.Path(address); ok {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		address = "http://localhost"
	} else if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("no answer from %s: %w", c.Admin, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if err != nil {
		return fmt.Errorf("the answer from %s broke off: %w", c.Admin, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", c.Admin, resp.Status, strings.TrimSpace(string(answer)))
	}
	_, err = fmt.Println(strings.TrimSpace(string(answer)))
	return err
}
