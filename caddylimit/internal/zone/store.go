package zone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/caddyserver/caddy/v2"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/redislimit"
)

// A store is a connection that all zones of one address share.
type store struct {
	address string
	client  *redislimit.Client
}

var stores = caddy.NewUsagePool()

// An opener connects to a store.
type opener func(address string) (*redislimit.Client, error)

func connect(ctx context.Context, log *slog.Logger) opener {
	return func(address string) (*redislimit.Client, error) {
		return redislimit.Open(ctx, address, redislimit.Logger(log))
	}
}

func openStore(address string, open opener) (*store, error) {
	shared, _, err := stores.LoadOrNew(address, func() (caddy.Destructor, error) {
		client, err := open(address)
		return &store{address, client}, err
	})
	if err != nil {
		return nil, fmt.Errorf("the store: %w", err)
	}
	return shared.(*store), nil
}

func (s *store) release() { _, _ = stores.Delete(s.address) }

// Destruct closes the connection, when nothing uses it any more.
func (s *store) Destruct() error {
	s.client.Close()
	return nil
}

// Address replaces the placeholders in the address of a store, such as {env.REDIS_URL}. One that is unknown or empty is
// an error.
func Address(address string) (string, error) {
	if address == "" {
		return "", nil
	}
	replaced, err := caddy.NewReplacer().ReplaceOrErr(address, true, true)
	if err == nil && replaced == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("the address of the store: %w", err)
	}
	return replaced, nil
}

// ParseOnFailure reads a failure policy: share, closed or open, and share for "".
func ParseOnFailure(text string) (redislimit.FailurePolicy, error) {
	if text == "" {
		return redislimit.FailShare, nil
	}
	for _, p := range []redislimit.FailurePolicy{redislimit.FailShare, redislimit.FailClosed, redislimit.FailOpen} {
		if p.String() == text {
			return p, nil
		}
	}
	return 0, fmt.Errorf("on_failure %q: want share, closed or open", text)
}

// backendQuota is for limits whose numbers come with the requests.
func backendQuota(l *redislimit.Limiter) func(engine.Policy) (httplimit.Backend, error) {
	return func(p engine.Policy) (httplimit.Backend, error) { return l.Quota(p) }
}
