package zone

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/weir-go/weir/redislimit"
)

func init() { caddy.RegisterModule((*App)(nil)) }

// appID is the App's name in Caddy. Users do not configure it.
const appID = "weir"

// An App contains the zones of one configuration. Caddy makes it for the first handler, starts it with the
// configuration, and stops it after the next configuration has started.
type App struct {
	log        *zap.Logger
	registry   *prometheus.Registry
	host       host
	uses       map[id]*Use
	order      []*Use // uses in the order in which the configuration named them
	collectors map[string]prometheus.Collector
	atEnd      []func()
	users      atomic.Int64 // requests in progress that keep the zones, plus one for the configuration
	endOnce    sync.Once    // makes end run once
}

// CaddyModule returns the module's ID and constructor.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: appID, New: func() caddy.Module { return new(App) }}
}

// Of returns the App of the configuration that is being provisioned.
func Of(ctx caddy.Context) (*App, error) {
	app, err := ctx.App(appID)
	if err != nil {
		return nil, err
	}
	return app.(*App), nil
}

// Provision is called by Caddy.
func (a *App) Provision(ctx caddy.Context) error {
	a.log, a.registry = ctx.Logger(a), ctx.GetMetricsRegistry()
	a.host = host{connect(ctx), ctx.Slogger()}
	a.uses, a.collectors = map[id]*Use{}, map[string]prometheus.Collector{}
	a.users.Store(1)
	return nil
}

// Enter keeps the zones usable until Leave, so that a request can settle its holds in a store after the configuration
// is replaced. Enter returns false if the zones have ended.
func (a *App) Enter() bool {
	for n := a.users.Load(); n > 0; n = a.users.Load() {
		if a.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// Leave must be called once after each Enter that returned true.
func (a *App) Leave() {
	if a.users.Add(-1) > 0 {
		return
	}
	go func() { // ending may call the store, and no request should wait for that
		if err := a.end(); err != nil {
			a.log.Error("the end of a configuration", zap.Error(err))
		}
	}()
}

// Use returns the zone of a module by its name. A second call in the configuration must have the same spec.
func (a *App) Use(module, name string, spec Spec) (*Use, error) {
	id := id{module, name}
	if u, found := a.uses[id]; found {
		spec.Sweep = u.Spec.Sweep // a sweep interval does not affect decisions
		if u.Spec != spec {
			return nil, fmt.Errorf("it is %v here, and %v in another handler of this configuration: handlers that "+
				"use the same name share the zone: want the same numbers and the same store, or two names", spec, u.Spec)
		}
		return u, nil
	}
	u, err := newUse(id, spec, a.host)
	if err != nil {
		return nil, err
	}
	a.uses[id], a.order = u, append(a.order, u)
	if u.Renewed {
		note := "the counts of the old one are lost"
		switch {
		case spec.Store != "":
			note = "its store keeps counting if the numbers are the same"
		case u.keepsCounts():
			note = "the tokens that keys have used still count"
		}
		a.log.Info("the limiter does not accept the new options, so the zone has a new one; "+note,
			zap.String("zone", name), zap.Stringer("limit", spec))
	}
	return u, nil
}

// Uses returns the zones of a module in the order in which the configuration named them.
func (a *App) Uses(module string) (uses []*Use) {
	for _, u := range a.order {
		if u.id.module == module {
			uses = append(uses, u)
		}
	}
	return uses
}

// Collector returns the collector of a module's metrics for a configuration. The first call makes the collector, with
// its last argument.
func Collector[C prometheus.Collector](a *App, module string, make func() C) (c C, err error) {
	if collector, found := a.collectors[module]; found {
		return collector.(C), nil
	}
	c = make()
	a.collectors[module] = c
	return c, a.registry.Register(c)
}

// AtEnd registers a function that is called when the zones of the configuration have ended.
func (a *App) AtEnd(do func()) { a.atEnd = append(a.atEnd, do) }

// Store returns the connection to the store of a spec. The connection stays open while the configuration uses its
// zones.
func (a *App) Store(spec Spec) (*redislimit.Client, error) {
	if spec.Store == "" {
		return nil, errors.New("there is no store: write for example store redis://127.0.0.1:6379 in the directive")
	}
	s, err := a.host.store(spec.Store, spec.Timeout, spec.OnLoss != redislimit.FailClosed)
	if err != nil {
		return nil, err
	}
	a.AtEnd(s.release)
	return s.client, nil
}

// Start activates the zones. If one zone cannot be activated, no zone is.
func (a *App) Start() error {
	for i, u := range a.order {
		if err := u.start(); err != nil {
			for _, started := range a.order[:i] {
				err = errors.Join(err, started.stop())
			}
			return fmt.Errorf("zone %v: %w", u, err)
		}
	}
	return nil
}

// Stop deactivates the zones.
func (a *App) Stop() (err error) {
	for _, u := range a.order {
		err = errors.Join(err, u.stop())
	}
	return err
}

// Cleanup ends the zones when Caddy no longer uses the configuration, even if it never started. If requests still use
// the zones, the last of these requests ends the zones. When the process ends, Cleanup does not wait for requests.
func (a *App) Cleanup() error {
	if a.users.Add(-1) > 0 && !caddy.Exiting() {
		return nil
	}
	return a.end()
}

func (a *App) end() (err error) {
	a.endOnce.Do(func() { err = a.endAll() })
	return err
}

func (a *App) endAll() (err error) {
	for _, u := range a.order {
		err = errors.Join(err, u.drop())
	}
	for _, do := range a.atEnd {
		do()
	}
	return err
}

var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
