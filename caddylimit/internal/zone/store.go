package zone

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weir-go/weir/redislimit"
)

// A store is a connection to a store. Zones of all configurations share it if three settings are the same: the address,
// the timeout, and the behavior if the store does not answer at the start.
type store struct {
	key    string // key of this connection in the pool stores
	client *redislimit.Client
	log    *relay
}

var stores = caddy.NewUsagePool()

type opener func(address string, options ...redislimit.ClientOption) (*redislimit.Client, error)

func connect(ctx context.Context) opener {
	return func(address string, options ...redislimit.ClientOption) (*redislimit.Client, error) {
		return redislimit.Open(ctx, address, options...)
	}
}

// A host contains the things that a configuration provides for its zones.
type host struct {
	open opener
	log  *slog.Logger
}

// store connects to a store. If the flag joinsLater is set, a store that does not answer yet counts as lost, without an
// error.
func (h host) store(address string, timeout time.Duration, joinsLater bool) (*store, error) {
	key := fmt.Sprint(timeout, " ", joinsLater, " ", address)
	shared, _, err := stores.LoadOrNew(key, func() (caddy.Destructor, error) {
		log := new(relay)
		log.logger.Store(h.log)
		options := []redislimit.ClientOption{redislimit.Logger(slog.New(log))}
		if timeout != 0 {
			options = append(options, redislimit.Timeout(timeout))
		}
		if joinsLater {
			options = append(options, redislimit.JoinLater())
		}
		client, err := h.open(address, options...)
		return &store{key, client, log}, err
	})
	if err != nil {
		return nil, fmt.Errorf("the store: %w", err)
	}
	return shared.(*store), nil
}

func (s *store) release() { _, _ = stores.Delete(s.key) }

// Destruct closes the connection when nothing uses it any more.
func (s *store) Destruct() error {
	s.client.Close()
	return nil
}
