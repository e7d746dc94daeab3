package serve

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/rules"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
)

// adminFor returns the [admin.Admin] for a file. It returns the current Admin, whose counters continue, if keys, pprof
// and hosts have not changed. Otherwise it returns a new Admin, and isNew is true. If the file has no administrator's
// endpoint, it returns nil.
func (s *Server) adminFor(f *rulefile.File, before *generation) (a *admin.Admin, isNew bool, err error) {
	settings, oldSettings := f.Admin, before.file.Admin
	switch {
	case settings == nil:
		return nil, false, nil
	case oldSettings != nil && oldSettings.Keys == settings.Keys && oldSettings.Pprof == settings.Pprof && slices.Equal(oldSettings.Hosts, settings.Hosts):
		return s.page.admin.Load(), false, nil
	}
	a, err = admin.New(admin.Config{
		Rules:   func() []admin.Rule { return s.current.Load().pageRules },
		Keys:    settings.Keys,
		Pprof:   settings.Pprof,
		Hosts:   settings.Hosts,
		Ready:   s.ready,
		Version: s.config.Version,
		Reloads: func() admin.Reload { return *s.page.lastReload.Load() },

		Requests:   s.requestsForPage,
		Upstreams:  s.pageUpstreams,
		Access:     s.page.access.Load,
		Actions:    s.actionsForPage(),
		Log:        s.config.Log,
		Collectors: s.collectors(),
	})
	return a, true, err
}

func accessOf(f *rulefile.File) (*admin.Access, error) {
	if f.Admin == nil {
		return nil, nil
	}
	a, err := f.Admin.Access()
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	return a, nil
}

// ready returns why the server should not get requests, or nil.
func (s *Server) ready() error {
	if s.sockets.Leaving() {
		return errors.New("the server is stopping")
	}
	return nil
}

func (g *generation) newPageRules() []admin.Rule {
	list := make([]admin.Rule, len(g.rules))
	for i, rule := range g.rules {
		key := rule.Limit().Key
		list[i] = admin.Rule{
			Name: rule.Name, Policy: rule.OwnLimit(), Shadow: rule.Shadow, Parts: partLabels(rule.Key),
			For: rule.Match.String(), By: rule.Key.String(), Tokens: g.meters.Shown(rule.Name), Form: g.formOf(rule),
			Text: func(parts []string) string {
				text, _ := key.Text(rule.Typed(parts))
				return text
			},
		}
		if rule.Store != nil {
			list[i].Stored = g.stored[rule.Name].Value
			var limit func([]string) engine.Policy
			if rule.Quota != nil {
				limit = func(parts []string) engine.Policy { return policyOf(rule, rule.Typed(parts)) }
			}
			list[i].Buckets = admin.Stored(list[i].Stored, list[i].Text, limit)
			continue
		}
		limiter := g.limiters[rule.Name]
		if limiter.Spread != nil {
			list[i].Buckets = admin.OneBucket(limiter.Spread, func() {
				limiter.Formers().MoveToSpread(limiter.Spread, func(l *engine.Limiter) (engine.Key, bool) {
					return key(limits.HasherOf(l), rule.Typed(nil))
				})
			})
			continue
		}
		list[i].Limiter = limiter.Limiter
		list[i].Buckets = admin.Local(limiter.Limiter, func(parts []string) engine.Key {
			request := rule.Typed(parts)
			k, _ := key(limits.HasherOf(limiter.Limiter), request)
			if rule.ByQuota() {
				quota, _ := limiter.Quota(policyOf(rule, request)) // no error: the quota was checked when it was read
				k = k.With(quota)
			}
			limiter.Formers().Move(limiter.Limiter, k, func(l *engine.Limiter) (engine.Key, bool) {
				return key(limits.HasherOf(l), request)
			})
			return k
		})
	}
	for i, rule := range g.rules {
		if rule.Constant != rulefile.Counted && !rule.ByQuota() && list[i].Buckets != nil {
			list[i].Buckets = admin.Constant(list[i].Buckets, rule.Constant == rulefile.Unlimited)
		}
	}
	return list
}

// policyOf returns the limit of a request. The rule must have a quota or more tiers than a limiter can have.
func policyOf(rule *rules.Rule, request *http.Request) engine.Policy {
	l := rule.Limit()
	p, err := l.Quota(request)
	if err != nil {
		return l.QuotaElse
	}
	return p
}

func partLabels(key rulefile.Key) (labels []string) {
	for _, part := range key {
		if part[0].Kind != rulefile.SourceGlobal {
			labels = append(labels, part.String())
		}
	}
	return labels
}

func (s *Server) noteReload(err error) {
	r := &admin.Reload{At: time.Now(), OK: err == nil, Generation: s.current.Load().number}
	result := "done"
	if err != nil {
		r.Error, result = err.Error(), "failed"
	}
	s.traffic.reloads.WithLabelValues(result).Inc()
	s.page.lastReload.Store(r)
}
