package zone

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weir-go/weir/redislimit"
)

// A store is a connection that all zones of one address share, over all configurations that use it.
type store struct {
	address string
	client  *redislimit.Client
	log     *relay
}

var stores = caddy.NewUsagePool()

// An opener connects to a store.
type opener func(address string, log *slog.Logger) (*redislimit.Client, error)

func connect(ctx context.Context) opener {
	return func(address string, log *slog.Logger) (*redislimit.Client, error) {
		return redislimit.Open(ctx, address, redislimit.Logger(log))
	}
}

// A host is what a configuration gives its zones.
type host struct {
	open opener
	log  *slog.Logger
	now  func() time.Time
}

func (h host) store(address string) (*store, error) {
	shared, _, err := stores.LoadOrNew(address, func() (caddy.Destructor, error) {
		log := new(relay)
		log.to.Store(h.log)
		client, err := h.open(address, slog.New(log))
		return &store{address, client, log}, err
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
