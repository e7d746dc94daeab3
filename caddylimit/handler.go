package caddylimit

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits"

	"github.com/weir-go/weir/caddylimit/internal/sharing"
	"github.com/weir-go/weir/caddylimit/internal/zone"
)

func init() { caddy.RegisterModule((*Handler)(nil)) }

// module distinguishes the zones of this handler from the zones of package compat.
const module = "weir"

// A Handler checks requests against limits.
type Handler struct {
	// Limits are the limits of the handler. An admitted request counts in all limits that match it. A request that a
	// limit refuses counts in none of them.
	Limits []Limit `json:"limits,omitempty"`
	// Headers are the styles of the header fields in answers: any of ietf, legacy and draft-06, or none. The default is
	// ietf.
	Headers []string `json:"headers,omitempty"`
	// Jitter is the largest random addition to Retry-After, in whole seconds, up to an hour. 0 adds nothing.
	Jitter caddy.Duration `json:"retry_jitter,omitempty"`
	// LogKey logs the key of each refused request. The key may be a secret.
	LogKey bool `json:"log_key,omitempty"`
	// State is the full path of a folder of this machine. The folder belongs to Caddy's user or to root. Limits that
	// are not in a store keep their counts in files of the folder. All processes of the machine count together in these
	// files, which outlive the processes. A sliding log cannot have a file.
	//
	// For limits in a store, the files contain this machine's debts, such as tokens that the machine admitted while the
	// store was lost. The next process or configuration charges the store with these debts.
	State string `json:"state,omitempty"`

	sharing.Sharing

	log         *zap.Logger
	limits      *httplimit.Middleware
	byName      map[string]*limit // limits by their names in the middleware
	app         *zone.App         // nil if no limit is in a store
	proxyFields proxyFields
}

// CaddyModule returns the module's ID and constructor.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.weir", New: func() caddy.Module { return new(Handler) }}
}

// Provision checks the configuration and finds the limits.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.log = ctx.Logger()
	app, err := zone.Of(ctx)
	if err != nil {
		return err
	}
	if len(h.Limits) == 0 {
		return errors.New("weir: no limits: want at least one")
	}
	spec, err := sharing.Spec(&h.Sharing)
	if err != nil {
		return fmt.Errorf("weir: %w", err)
	}
	if spec.State = h.State; h.State != "" && !filepath.IsAbs(h.State) {
		return fmt.Errorf("weir: state %q: want the full path of a folder, such as /dev/shm/weir", h.State)
	}
	h.byName = map[string]*limit{}
	var limits []httplimit.Limit
	for i := range h.Limits {
		l := &h.Limits[i]
		if h.byName[l.Name] != nil {
			return fmt.Errorf("weir: limit %d of %d has the same name as one before, %q", i+1, len(h.Limits), l.Name)
		}
		provisioned, err := l.provision(ctx, app, spec)
		if err != nil {
			return fmt.Errorf("weir: limit %d of %d, %q: %w", i+1, len(h.Limits), l.Name, err)
		}
		limits, h.byName[l.Name] = append(limits, provisioned.limit), provisioned
		if provisioned.use.Spec.Store != "" {
			h.app = app
		}
		if l.Quotas != nil && l.Quotas.Header != "" {
			h.proxyFields = append(h.proxyFields, http.CanonicalHeaderKey(l.Quotas.Header))
		}
		for _, warning := range provisioned.warnings {
			h.log.Warn(warning, zap.String("limit", l.Name))
		}
	}
	options, err := h.options()
	if err != nil {
		return fmt.Errorf("weir: %w", err)
	}
	if h.limits, err = httplimit.New(limits, options...); err != nil {
		return fmt.Errorf("weir: %w", err)
	}
	_, err = zone.Collector(app, module, func() *collector { return &collector{app: app} })
	return err
}

func (h *Handler) options() ([]httplimit.Option, error) {
	styles, err := parseHeaders(h.Headers)
	if err != nil {
		return nil, err
	}
	options := []httplimit.Option{
		httplimit.Headers(styles),
		httplimit.OnError(func(limit string, err error) {
			h.log.Error("the limit could not be applied", zap.String("limit", limit), zap.Error(err))
		}),
	}
	if h.Jitter != 0 {
		options = append(options, httplimit.RetryJitter(time.Duration(h.Jitter), nil))
	}
	return options, nil
}

func parseHeaders(names []string) (httplimit.HeaderStyle, error) {
	if len(names) == 0 {
		return httplimit.IETF, nil
	}
	styles := httplimit.NoHeaders
	for _, name := range names {
		switch name {
		case "ietf":
			styles |= httplimit.IETF
		case "legacy":
			styles |= httplimit.Legacy
		case "draft-06":
			styles |= httplimit.Draft06
		case "none":
			if len(names) > 1 {
				return 0, fmt.Errorf("headers %s: want styles, or only none", strings.Join(names, " "))
			}
		default:
			return 0, fmt.Errorf("headers %q: want ietf, legacy, draft-06, some of them, or none", name)
		}
	}
	return styles, nil
}

// ServeHTTP passes an admitted request on, and returns an error for any other request. It answers a refused gRPC call
// itself, because gRPC clients do not understand HTTP errors.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if h.app != nil && h.app.Enter() {
		defer h.app.Leave()
	}
	res := h.limits.Decide(r)
	zone.Count(&res, h.useOf)
	h.proxyFields.remove(r)
	if !res.Allowed() {
		return h.refuse(w, r, &res)
	}
	var err error
	res.Serve(w, r, func(w http.ResponseWriter, r *http.Request) int {
		defer h.settle(&res, r) // even if the handler panics
		if err = next.ServeHTTP(w, r); err == nil {
			return 0
		}
		var handlerErr caddyhttp.HandlerError
		if errors.As(err, &handlerErr) && handlerErr.StatusCode != 0 {
			return handlerErr.StatusCode
		}
		return http.StatusInternalServerError // the status with which Caddy answers a panic
	})
	return err
}

// settle corrects the estimated costs (holds) of a request that is over. If a limit has a placeholder for the cost, the
// hold of the limit is settled with the cost in the placeholder. A value that is not a cost settles nothing.
func (h *Handler) settle(res *httplimit.Result, r *http.Request) {
	for i := range res.Len() {
		l := h.byName[res.Check(i).Name()]
		if l.settle == nil {
			continue
		}
		text := l.settle.Of(r)
		if text == "" {
			continue
		}
		cost, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			h.log.Error("the cost of a request is not a whole number, so it costs its estimate",
				zap.String("limit", l.name), zap.String("value", text[:min(len(text), 64)]))
			continue
		}
		if lost := limits.HoldFrom(r.Context(), l.name).Settle(cost); lost > 0 {
			h.log.Warn("a key already owes the maximum, so a part of a cost is not charged",
				zap.String("limit", l.name), zap.Uint64("tokens", lost))
		}
	}
}

func (h *Handler) useOf(limit string) *zone.Use { return h.byName[limit].use }

func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, res *httplimit.Result) error {
	var refusing *limit
	var wait time.Duration
	if c, ok := res.Tightest(); ok && res.Status() == http.StatusTooManyRequests {
		refusing = h.byName[c.Name()]
		if !c.InFlight() { // it is unknown when a request in flight will be over
			wait = c.Decision.RetryAfter
		}
		if entry := h.log.Check(zap.InfoLevel, "rate limit exceeded"); entry != nil {
			fields := []zap.Field{zap.String("limit", refusing.name), zap.Duration("wait", wait), zap.String("remote", r.RemoteAddr)}
			if h.LogKey {
				fields = append(fields, zap.String("key", refusing.key.Text(r)))
			}
			entry.Write(fields...)
		}
		if replacer, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
			replacer.Set("http.weir.limit", refusing.name)
		}
	}
	if httplimit.IsGRPC(r) {
		res.Refuse(w, r)
		return nil
	}
	res.WriteHeaders(w.Header())
	if refusing == nil {
		return caddyhttp.Error(res.Status(), errUnavailable)
	}
	return caddyhttp.Error(res.Status(), refusing.exceededErr)
}

var errUnavailable = errors.New("a rate limit could not be applied")

var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
