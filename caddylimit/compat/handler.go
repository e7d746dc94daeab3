package compat

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"

	"github.com/weir-go/weir/caddylimit/internal/sharing"
	"github.com/weir-go/weir/caddylimit/internal/zone"
)

func init() { caddy.RegisterModule((*Handler)(nil)) }

// module distinguishes the zones of this handler from the limits of package caddylimit.
const module = "rate_limit"

// A Handler refuses a request that exceeds a zone, with the error 429. An admitted request counts as an event in all
// zones that match it. A refused request counts in no zone.
type Handler struct {
	// RateLimits are the zones by name. Handlers that use the same name share the zone.
	RateLimits map[string]*RateLimit `json:"rate_limits,omitempty"`
	// Jitter is the largest random addition to Retry-After, as a fraction of the wait, 0 to 1,000. For example, 0.2
	// adds at most a fifth of the wait.
	Jitter float64 `json:"jitter,omitempty"`
	// SweepInterval is how often idle keys are forgotten, 1ms to 24h; the default is 1m. It does not affect decisions.
	SweepInterval caddy.Duration `json:"sweep_interval,omitempty"`
	// LogKey logs the key of each refused request. The key may be a secret.
	LogKey bool `json:"log_key,omitempty"`
	// DisableMetrics turns off the metrics of this handler's zones.
	DisableMetrics bool `json:"disable_metrics,omitempty"`

	// Sharing has no counterpart in the original.
	sharing.Sharing

	// Distributed and Storage share zones between machines in the original. Here they have no effect. Without Store, a
	// log line warns that each machine counts alone.
	Distributed *Distributed    `json:"distributed,omitempty"`
	Storage     json.RawMessage `json:"storage,omitempty"`

	ctx    caddy.Context
	log    *zap.Logger
	events *caddyevents.App
	limits *httplimit.Middleware
	byName map[string]*zoneLimit // limits by their names in the middleware
}

// CaddyModule returns the module's ID and constructor.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.rate_limit", New: func() caddy.Module { return new(Handler) }}
}

// Provision checks the configuration and finds the zones.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.ctx, h.log = ctx, ctx.Logger()
	if err := h.check(); err != nil {
		return fmt.Errorf("rate_limit: %w", err)
	}
	events, err := ctx.App("events")
	if err != nil {
		return err
	}
	h.events = events.(*caddyevents.App)
	if h.countsAlone() {
		h.log.Warn(countsAloneWarning)
	}
	app, err := zone.Of(ctx)
	if err != nil {
		return err
	}
	if err := h.provision(ctx, app); err != nil {
		return fmt.Errorf("rate_limit: %w", err)
	}
	return nil
}

const maxJitter = 1000.

// Distributed contains the original's intervals for writing and reading the counts of machines, and the age at which it
// drops them.
type Distributed struct {
	WriteInterval caddy.Duration `json:"write_interval,omitempty"`
	ReadInterval  caddy.Duration `json:"read_interval,omitempty"`
	PurgeAge      caddy.Duration `json:"purge_age,omitempty"`
}

const countsAloneWarning = "zones are not shared through caddy's storage: each machine counts separately, so N machines " +
	"together admit N times the events of a zone: use `store redis://host:6379` instead of distributed and storage " +
	"to count the requests of all machines together"

// check returns an error for wrong settings of the handler. It does not check the handler's zones.
func (h *Handler) check() error {
	switch {
	case h.Distributed != nil && min(h.Distributed.ReadInterval, h.Distributed.WriteInterval, h.Distributed.PurgeAge) < 0:
		return errors.New("distributed: a duration below 0")
	case !(h.Jitter >= 0 && h.Jitter <= maxJitter):
		return fmt.Errorf("jitter %v: want a fraction of the wait, from 0 to %v", h.Jitter, maxJitter)
	}
	if h.SweepInterval == 0 {
		h.SweepInterval = caddy.Duration(time.Minute)
	}
	if sweep := time.Duration(h.SweepInterval); sweep < time.Millisecond || sweep > 24*time.Hour {
		return fmt.Errorf("sweep_interval %v: want 1ms to 24h", sweep)
	}
	return nil
}

func (h *Handler) countsAlone() bool {
	return (h.Distributed != nil || isSet(h.Storage)) && h.Store == ""
}

func isSet(raw json.RawMessage) bool { return raw != nil && string(raw) != "null" }

// provision finds the zones, and sorts them by tightness.
func (h *Handler) provision(ctx caddy.Context, app *zone.App) error {
	spec, err := sharing.Spec(&h.Sharing)
	if err != nil {
		return err
	}
	spec.Sweep = time.Duration(h.SweepInterval)
	var metrics *metrics
	if !h.DisableMetrics {
		if metrics, err = zone.Collector(app, module, newMetrics); err != nil {
			return err
		}
	}
	var zones []*zoneLimit
	for name, limit := range h.RateLimits {
		if limit == nil {
			return fmt.Errorf("zone %q: it is null: want a window and max_events", name)
		}
		z, err := limit.provision(ctx, app, name, spec)
		if err != nil {
			return fmt.Errorf("zone %q: %w", name, err)
		}
		if metrics != nil {
			z.times = metrics.show(z.use, limit)
		}
		zones = append(zones, z)
		for _, note := range z.notes {
			h.log.Info(note, zap.String("zone", name))
		}
		for _, warning := range z.warnings {
			h.log.Warn(warning, zap.String("zone", name))
		}
	}
	if len(zones) == 0 {
		return nil // as in the original
	}
	slices.SortFunc(zones, func(a, b *zoneLimit) int {
		return cmp.Or(cmp.Compare(a.permissiveness, b.permissiveness), cmp.Compare(a.use.Name(), b.use.Name()))
	})
	h.byName = map[string]*zoneLimit{}
	var limits []httplimit.Limit
	for i, p := range zones {
		// A zone may have any name, but a limit of the middleware may not. So the limits have numbers, which no client
		// sees.
		httpLimit := httplimit.Limit{Name: strconv.Itoa(i), Key: p.key.Key, Match: p.match}
		limits, h.byName[httpLimit.Name] = append(limits, p.use.Limit(httpLimit)), p
	}
	h.limits, err = httplimit.New(limits, httplimit.Headers(httplimit.NoHeaders),
		httplimit.OnError(func(limit string, err error) {
			h.log.Error("the store of the zone failed", zap.String("zone", h.byName[limit].use.Name()), zap.Error(err))
		}))
	return err
}

// ServeHTTP passes an admitted request to the next handler, and returns an error for any other request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if h.limits == nil {
		return next.ServeHTTP(w, r)
	}
	var began time.Time
	if !h.DisableMetrics {
		began = time.Now()
	}
	res := h.limits.Decide(r)
	zone.Count(&res, func(limit string) *zone.Use { return h.byName[limit].use })
	if !h.DisableMetrics {
		took := time.Since(began).Seconds()
		for i := range res.Len() {
			h.byName[res.Check(i).Name()].times.Observe(took)
		}
	}
	if !res.Allowed() {
		return h.refuse(w, r, &res)
	}
	return next.ServeHTTP(w, r)
}

// refuse returns the error for a refused request. The error names the zone with the longest wait, because the request
// cannot pass before this wait is over.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, res *httplimit.Result) error {
	c, ok := res.Tightest()
	if !ok || res.Status() != http.StatusTooManyRequests {
		return caddyhttp.Error(res.Status(), errors.New("the store of a rate limit does not answer"))
	}
	tightest, wait := h.byName[c.Name()], c.Decision.RetryAfter
	if wait != engine.Never {
		if h.Jitter > 0 {
			wait = time.Duration(min(float64(wait)*(1+rand.Float64()*h.Jitter), float64(math.MaxInt64/2)))
		}
		w.Header().Set("Retry-After", strconv.FormatInt(seconds(wait), 10))
	}
	name := tightest.use.Name()
	remote, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		remote = r.RemoteAddr
	}
	if entry := h.log.Check(zap.InfoLevel, "rate limit exceeded"); entry != nil {
		fields := []zap.Field{zap.String("zone", name), zap.Duration("wait", wait), zap.String("remote_ip", remote)}
		if h.LogKey {
			fields = append(fields, zap.String("key", tightest.key.Text(r)))
		}
		entry.Write(fields...)
	}
	h.events.Emit(h.ctx, "rate_limit_exceeded", map[string]any{"zone": name, "wait": wait, "remote_ip": remote})
	if replacer, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		replacer.Set("http.rate_limit.exceeded.name", name)
	}
	return caddyhttp.Error(http.StatusTooManyRequests, nil)
}

// seconds returns d in whole seconds, rounded up and at least 1. So a client that comes back after this time is
// admitted.
func seconds(d time.Duration) int64 {
	return max(int64(d/time.Second)+min(int64(d%time.Second), 1), 1)
}

var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
