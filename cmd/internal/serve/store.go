package serve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/cmd/internal/refcount"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/redislimit"
)

// openStore puts the store of g's rules into g. If the store does not change, this is the current store, or else a new
// one.
//
// A server starts even if the store does not answer. But it does not start if a rule would then answer 503, or if a
// rule has the limits of its keys in the store. A reload or an upgrade fails if the store does not answer, because the
// running server knows what keys have used.
func (s *Server) openStore(g, before *generation) error {
	settings, oldSettings := g.file.Store, before.file.Store
	if !hasHash(g.file) && !slices.ContainsFunc(g.file.Rules, func(r rulefile.Rule) bool { return r.Store != nil }) {
		return nil
	}
	if before.store != nil && settings.Same(oldSettings) && settings.SameConnection(oldSettings) {
		g.store = before.store.Acquire()
		return nil
	}
	options := append(settings.Options(), redislimit.Logger(s.config.Log))
	isStart := before.onClose == nil && !s.config.Inherited.HandedOver()
	if isStart && !hasHash(g.file) && !slices.ContainsFunc(g.file.Rules, func(r rulefile.Rule) bool {
		return r.Store != nil && r.Store.OnLoss == redislimit.FailClosed
	}) {
		options = append(options, redislimit.JoinLater())
	}
	store, err := redislimit.Open(s.life.base, settings.URL, options...)
	if err != nil {
		return fmt.Errorf("store: %s", strings.TrimPrefix(err.Error(), "redislimit: "))
	}
	g.store = refcount.New(store, func(s *redislimit.Client) { _ = s.Close() }) // Close always returns nil
	return nil
}

// storedLimiter puts the limiter of a rule in the store into g. If nothing about the limiter changes, it is the current
// limiter, which keeps its leases.
func storedLimiter(g, before *generation, rule *rulefile.Rule) error {
	if old := before.stored[rule.Name]; old != nil && g.store == before.store && sameStored(before.file, rule) {
		g.stored[rule.Name] = old.Acquire()
		return nil
	}
	limiter, err := redislimit.New(g.store.Value, rule.Name, rule.StorePolicy(), rule.StoreOptions()...)
	if err != nil {
		return &LimiterError{rule.Name, err}
	}
	g.stored[rule.Name] = refcount.New(limiter, func(l *redislimit.Limiter) { _ = l.Close() }) // Close returns nil
	return nil
}

// sameStored reports whether a new limiter of the rule would equal the current one.
func sameStored(before *rulefile.File, rule *rulefile.Rule) bool {
	return slices.ContainsFunc(before.Rules, func(r rulefile.Rule) bool { return r.SameInStore(rule) })
}
