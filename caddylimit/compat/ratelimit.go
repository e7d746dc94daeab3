package compat

import (
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"

	"github.com/weir-go/weir/caddylimit/internal/key"
	"github.com/weir-go/weir/caddylimit/internal/match"
	"github.com/weir-go/weir/caddylimit/internal/zone"
)

// A RateLimit is a zone.
type RateLimit struct {
	// MatcherSets selects the requests of the zone. The default is all requests.
	MatcherSets caddyhttp.RawMatcherSets `json:"match,omitempty" caddy:"namespace=http.matchers"`
	// Key is a text with placeholders that identifies a client. Without a placeholder, all clients together have one
	// limit.
	Key string `json:"key,omitempty"`
	// Window is the time in which MaxEvents are allowed: 1µs to 365 days.
	Window caddy.Duration `json:"window,omitempty"`
	// MaxEvents is how many events a key may have in any interval of length Window; 0 refuses all. Up to 4,096 events
	// are counted exactly if the window is not too short. Otherwise, a sliding window counter counts up to 16,777,215
	// events.
	MaxEvents int `json:"max_events,omitempty"`
	// If a key is an address, only its first IPv4Prefix or IPv6Prefix bits count. 0 stands for the whole address.
	IPv4Prefix int `json:"ipv4_prefix,omitempty"`
	IPv6Prefix int `json:"ipv6_prefix,omitempty"`
	// MaxKeys is the number of keys for which the zone has room. The default is a million, or 100,000 for a sliding
	// log. If these keys need more than 256 MiB, the default is lower. The original has no such option and no bound.
	MaxKeys int `json:"max_keys,omitempty"`
}

// A zoneLimit is a zone as one handler uses it.
type zoneLimit struct {
	use             *zone.Use
	key             *key.Key
	match           func(*http.Request) bool
	permissiveness  float64
	times           prometheus.Observer // observes the times of decisions; nil without metrics
	notes, warnings []string
}

func (l *RateLimit) provision(ctx caddy.Context, app *zone.App, name string, zoneSpec zone.Spec) (*zoneLimit, error) {
	p := &zoneLimit{}
	var err error
	if p.match, err = match.Load(ctx, l, "MatcherSets"); err != nil {
		return nil, err
	}
	if p.key, p.warnings, err = key.New([]string{l.Key}, l.IPv4Prefix, l.IPv6Prefix); err != nil {
		return nil, err
	}
	if zoneSpec.Policy, err = l.policy(); err != nil {
		return nil, err
	}
	if zoneSpec.Policy == engine.Blocked() {
		zoneSpec = zoneSpec.InProcess() // it does not count, so it needs no store
	}
	if zoneSpec.Policy.Algorithm() == engine.AlgorithmSlidingWindow {
		p.notes = append(p.notes, fmt.Sprintf("%d events in %v are too many for an exact log, which has room for 4096 and less in "+
			"short windows: a sliding window counter counts them, with an error of at most some percent", l.MaxEvents, time.Duration(l.Window)))
	}
	zoneSpec.MaxKeys = l.MaxKeys
	if keys, err := zoneSpec.Keys(); err != nil {
		return nil, err
	} else if zoneSpec.Store == "" && l.MaxKeys == 0 && keys < zone.DefaultLogKeys {
		p.notes = append(p.notes, fmt.Sprintf("the zone has room for %d keys, whose logs take %d MiB: set max_keys to change this",
			keys, zone.TableBytes>>20))
	}
	p.permissiveness = float64(l.MaxEvents) / float64(l.Window)
	p.use, err = app.Use(module, name, zoneSpec)
	return p, err
}

// maxEvents is the largest number of events that a sliding window counter counts.
const maxEvents = 1<<24 - 1

// policy returns an exact policy if the numbers allow an exact policy. Otherwise it returns a sliding window counter.
func (l *RateLimit) policy() (engine.Policy, error) {
	window := time.Duration(l.Window)
	if window < spec.MinWindow || window > spec.MaxWindow {
		return engine.Policy{}, fmt.Errorf("window %v: want %v to %v", window, spec.MinWindow, spec.MaxWindow)
	}
	if l.MaxEvents < 0 || l.MaxEvents > maxEvents {
		return engine.Policy{}, fmt.Errorf("max_events %d: want 0 to %d", l.MaxEvents, maxEvents)
	}
	limit := spec.Limit{Algorithm: engine.AlgorithmSlidingLog}
	if limit.Rate = spec.Of(engine.Per(float64(l.MaxEvents), window)); l.MaxEvents == 0 {
		limit.Rate = spec.Blocked
	}
	exact, err := limit.Policy()
	if err != nil {
		limit.Algorithm = engine.AlgorithmSlidingWindow
		return limit.Policy()
	}
	return exact, nil
}
