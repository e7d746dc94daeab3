package envoy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/quotas"
)

// readTimeout bounds how long reading the limits of values may take when a configuration becomes active.
const readTimeout = time.Minute

func (s *Service) openQuotas(r *rule) (err error) {
	q := r.Quotas
	if q == nil {
		return nil
	}
	var source quotas.Source
	switch {
	case s.tables.inStore && q.Limit.Algorithm != engine.AlgorithmFixedWindow:
		return fmt.Errorf("quotas: in a store only limits of a %v have them", engine.AlgorithmFixedWindow)
	case q.Hash != "" && s.options.Store == nil:
		return errors.New("quotas: a hash needs a store: set REDIS_URL")
	case q.Hash != "":
		source = func(ctx context.Context) (*quotas.Table, error) {
			return q.Read(func(reader quotas.Reader) (*quotas.Table, error) {
				return reader.Pairs(func(yield func(key, limit string) error) error { return s.options.Store.Hash(ctx, q.Hash, yield) })
			})
		}
	default:
		var file quotas.FileReader
		source = func(context.Context) (*quotas.Table, error) {
			return q.Read(func(reader quotas.Reader) (*quotas.Table, error) { return file.Read(reader, q.File) })
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	if r.quotas, err = quotas.Open(ctx, source); err != nil {
		return fmt.Errorf("quotas: %s: %w", q.Source(), err)
	}
	s.logQuotas(r, r.quotas.Table(), nil)
	return nil
}

// followQuotas reads the limits of a configuration's values again and again, until the configuration is released.
func (s *Service) followQuotas(a *activeConfig) {
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	for i := range a.rules {
		if r := &a.rules[i]; r.quotas != nil {
			go r.quotas.Follow(ctx, r.Quotas.Every, func(t *quotas.Table, err error) { s.logQuotas(r, t, err) })
		}
	}
}

func (s *Service) logQuotas(r *rule, t *quotas.Table, err error) {
	switch log := s.options.Log; {
	case log == nil:
	case err != nil:
		log.Warn("limits not read: the previous ones stay active", "rule", r.Stat, "from", r.Quotas.Source(),
			"error", strings.TrimPrefix(err.Error(), "redislimit: "))
	default:
		log.Info("limits read", "rule", r.Stat, "from", r.Quotas.Source(), "keys", t.Len(), "different", t.Policies(), "bytes", t.Bytes())
	}
}

// valueLimit returns the limit that a descriptor's last value has for itself. It returns false if the rule's limit
// applies.
func (r *rule) valueLimit(descriptor *commonv3.RateLimitDescriptor) (p engine.Policy, ok bool) {
	if r.quotas == nil {
		return p, false
	}
	entries := descriptor.GetEntries()
	if p, ok = r.quotas.Of(entries[len(entries)-1].GetValue()); !ok && r.Quotas.Refuse {
		return engine.Blocked(), true
	}
	return p, ok
}

// useValueLimit makes a check use a value's own limit. For a fixed window, the service compares the count with this
// limit. In other tables in memory, the limit is a quota in the counter's key.
func (c *check) useValueLimit(p engine.Policy) {
	c.limit = c.rule.Limit.WithPolicy(p)
	c.currentLimit = currentLimit(c.limit, c.rule.Name)
	if local, ok := c.table.(localTable); ok && c.limit.Algorithm != engine.AlgorithmFixedWindow {
		c.quota, _ = local.limiter.Quota(p) // the numbers were checked when the limit was read
	}
	if !needsTable(c.limit) {
		c.table = nil
	}
}
