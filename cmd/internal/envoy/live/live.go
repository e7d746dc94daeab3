// Package live shows the service on weir's live page.
package live

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"

	"github.com/weir-go/weir/cmd/internal/envoy"
	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

// Options are the settings of a Page.
type Options struct {
	Version    string
	Keys       admin.Keys
	Hosts      []string // names by which the page may be requested, in addition to localhost and addresses
	Reset      bool     // keys may be reset
	Pprof      bool
	ShadowMode bool // the service is in shadow mode
	Ready      func() error
}

// A Page is the live page of a service. First make the page the service's Observer, then call Show. Call Close before
// the page's server is shut down.
type Page struct {
	admin      *admin.Admin
	service    *envoy.Service
	options    Options
	view       atomic.Pointer[view]
	reload     atomic.Pointer[admin.Reload]
	generation atomic.Uint64 // number of configurations that have become active

	hasOverrides atomic.Bool // a request has carried its own limit

	answered, refused, failed atomic.Uint64 // requests
}

var _ envoy.Observer = (*Page)(nil)

// New returns a page that shows nothing yet.
func New(o Options) *Page {
	p := &Page{options: o}
	p.view.Store(&view{})
	p.reload.Store(&admin.Reload{})
	return p
}

// Show makes the page show a service, and serve the given metrics.
func (p *Page) Show(service *envoy.Service, metrics ...prometheus.Collector) (err error) {
	p.service = service
	p.admin, err = admin.New(admin.Config{
		Program: "weir-envoy", Version: p.options.Version, Keys: p.options.Keys, Hosts: p.options.Hosts,
		NoReset: !p.options.Reset, Pprof: p.options.Pprof, Ready: p.options.Ready, Collectors: metrics,
		Rules: p.rules, Tables: p.tables, Requests: p.requests,
		Reloads: func() admin.Reload { return *p.reload.Load() },
	})
	return err
}

// Handler serves the page.
func (p *Page) Handler() http.Handler { return p.admin.Handler() }

// Close ends the open event streams.
func (p *Page) Close() error { return p.admin.Close() }

// Reloaded records that a configuration was read. The error err says why the configuration did not become active. It is
// nil if it did.
func (p *Page) Reloaded(err error) {
	r := &admin.Reload{At: time.Now(), OK: err == nil}
	if err == nil {
		r.Generation = p.generation.Add(1)
		p.view.Store(p.newView(p.service.Config()))
	} else {
		r.Generation, r.Error = p.generation.Load(), err.Error()
	}
	p.reload.Store(r)
}

// Decided implements [envoy.Observer].
func (p *Page) Decided(d envoy.Decision) {
	name := overridesCard
	if d.Rule != nil {
		name = p.view.Load().nameOf(d.Rule)
	} else if !p.hasOverrides.Load() {
		p.hasOverrides.Store(true)
	}
	p.admin.Observe(name, d.Outcome)
	if d.Outcome == limits.Refused || d.Outcome == limits.ShadowRefused {
		b := admin.Bucket{Key: d.Key, Limit: d.Limit}
		if d.Key == (engine.Key{}) {
			b.Text = text(d.Descriptor)
		}
		p.admin.Refused(name, b, func() string { return text(d.Descriptor) })
	}
}

// Answered implements [envoy.Observer].
func (p *Page) Answered(response *rlsv3.RateLimitResponse, err error) {
	p.answered.Add(1)
	switch {
	case err != nil:
		p.failed.Add(1)
	case response.GetOverallCode() == rlsv3.RateLimitResponse_OVER_LIMIT:
		p.refused.Add(1)
	}
}

func (p *Page) requests() admin.Requests {
	// The total is read last, so that no part exceeds it.
	refused, failed := p.refused.Load(), p.failed.Load()
	return admin.Requests{Answered: p.answered.Load(), Refused: refused, Failures: failed}
}

func (p *Page) tables() []admin.Table {
	var tables []admin.Table
	for _, t := range p.service.Tables() {
		if t.Slots > 0 { // a table in a store has no slots
			tables = append(tables, admin.Table{Name: t.Name, Stats: engine.Stats{
				Keys: t.Keys, Slots: t.Slots, Bytes: t.Bytes, Evictions: t.Evictions, NoRoom: t.NoRoom,
			}})
		}
	}
	return tables
}

// rules returns the rules that are shown. If requests carried limits, there is one more rule for them.
func (p *Page) rules() []admin.Rule {
	rules := p.view.Load().rules
	if !p.hasOverrides.Load() {
		return rules
	}
	return append(rules[:len(rules):len(rules)], admin.Rule{
		Name: overridesCard, Policy: "as the request says", For: "descriptors with a limit of their own", By: "entries",
		Shadow: p.options.ShadowMode,
	})
}

// descriptor returns a descriptor with the entries of a rule. An operator types a text for each entry that the rule
// leaves open: the value or, if the key is a pattern, key=value. The parameter texts has these texts.
func descriptor(r *config.Rule, texts []string) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for _, e := range r.Entries() {
		key, value := e.Key, e.Value
		if isOpen(e) {
			value, texts = texts[0], texts[1:]
			if strings.Contains(e.Key, "*") {
				key, value, _ = strings.Cut(value, "=")
			}
		}
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d
}
