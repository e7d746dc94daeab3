package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/cmd/internal/actions"
	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/rules"
	"github.com/weir-go/weir/limits"
)

func (g *generation) newActionRules() *actions.Rules {
	list := &actions.Rules{Addr: g.ip.Addr}
	for _, rule := range g.rules {
		list.List = append(list.List, actions.Rule{
			Name: rule.Name, Form: g.formOf(rule), Meets: rule.Meets, Text: rule.Limit().Key.Text,
		})
	}
	return list
}

// formOf describes how a rule makes the text of its key. It has the sources, and how many bits of an address count.
func (g *generation) formOf(rule *rules.Rule) string {
	return fmt.Sprintf("%v; /%d, /%d", rule.Key, g.file.ClientIP.IPv4Prefix, g.file.ClientIP.IPv6Prefix)
}

type verdictKey struct{}

// applyActions applies the active actions to a request. If the request is banned, applyActions answers it and returns
// false. Otherwise it returns the request to use from then on. If an action applies, the context of this request has
// the verdict.
func (s *Server) applyActions(g *generation, w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	if g.file.Admin != nil && s.actions.Seen.Wants() {
		s.noteSender(g, r)
	}
	if !s.actions.Any() {
		return r, true
	}
	v := s.actions.Judge(g.actionRules, r)
	switch {
	case v.Banned != nil:
		g.requests.logBan(r, v.Banned)
		w.Header().Set("Cache-Control", "no-store")
		fail(w, r, g.file.Response.Body, http.StatusForbidden, "Requests of this client are refused for a time")
		if x := exchangeOf(r); x != nil {
			x.answeredBy = byLimits
		}
		return r, false
	case v.Any():
		return r.WithContext(context.WithValue(r.Context(), verdictKey{}, &v)), true
	}
	return r, true
}

func (s *Server) withActions(g *generation, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r, ok := s.applyActions(g, w, r); ok {
			next.ServeHTTP(w, r)
		}
	})
}

// modes returns the mode of each rule for a request.
func (s *Server) modes(r *http.Request) func(int) limits.Mode {
	if !s.actions.Any() {
		return nil
	}
	if v, ok := r.Context().Value(verdictKey{}).(*actions.Verdict); ok {
		return v.Mode
	}
	return nil
}

func (s *Server) isExempt(r *http.Request) bool {
	if !s.actions.Any() {
		return false
	}
	v, ok := r.Context().Value(verdictKey{}).(*actions.Verdict)
	return ok && v.Exempt != nil
}

// noteSender notes the sender of a request. The texts in the keys of rules identify the user. Addresses do not count as
// texts.
func (s *Server) noteSender(g *generation, r *http.Request) {
	sender := actions.Sender{Client: g.ip.Prefix(r), Agent: r.UserAgent()}
	if g.file.Admin.Keys == admin.KeysFull {
		sender.Addr = g.ip.Addr(r)
	}
	var user []string
	for _, rule := range g.rules {
		if !namesUsers(rule.Key) {
			continue
		}
		for _, text := range rule.KeyTexts(r) {
			if strings.HasPrefix(text, "text:") {
				user = append(user, text)
			}
		}
	}
	sender.User = strings.Join(user, "\n")
	s.actions.Note(sender)
}

// namesUsers reports whether a key has a header, cookie or query parameter. All other sources of the key must be
// addresses or SourceNone.
func namesUsers(key rulefile.Key) (found bool) {
	for _, part := range key {
		for _, source := range part {
			switch source.Kind {
			case rulefile.SourceHeader, rulefile.SourceCookie, rulefile.SourceQuery:
				found = true
			case rulefile.SourceIP, rulefile.SourceNone:
			default:
				return false
			}
		}
	}
	return found
}

func (l *requestLog) logBan(r *http.Request, action *actions.Active) {
	if !isSampled(l.settings.Refusals) {
		return
	}
	l.log.LogAttrs(r.Context(), slog.LevelInfo, "banned", slog.String("client", l.ip.Addr(r).String()),
		slog.String("method", r.Method), slog.Uint64("action", action.ID))
}

// watchActions runs until ctx ends. It forgets actions that have ended, and reads the actions of other processes.
func (s *Server) watchActions(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.actions.Refresh()
		}
	}
}

// openActions opens the file of actions in the state folder of a rule file. The texts of keys are stored only if the
// page may show them.
func (s *Server) openActions(f *rulefile.File) error {
	if err := s.actions.Open(f.State); err != nil {
		return fmt.Errorf("state: the actions: %w", err)
	}
	if f.Admin == nil || f.Admin.Keys != admin.KeysFull {
		if err := s.actions.Forget(); err != nil {
			return fmt.Errorf("state: the actions: %w", err)
		}
	}
	return nil
}

// buildWithActions calls build, and moves the actions to the state folder of the new rule file. After an error, the
// actions stay in the previous folder.
func (s *Server) buildWithActions(file *rulefile.File, before *generation, changes *rulefile.Changes,
	a *admin.Admin) (*generation, error) {
	if err := s.openActions(file); err != nil {
		return nil, err
	}
	next, err := s.build(file, before, changes, a)
	if err != nil {
		err = errors.Join(err, s.actions.Open(before.file.State))
	}
	return next, err
}

func (s *Server) actionsForPage() *admin.Actions {
	return &admin.Actions{
		Table: s.actions,
		// Without a token, any client that reaches the listener could ban every other client.
		NeedToken: func() bool { a := s.current.Load().file.Admin; return a != nil && a.IsRemote() },
		Client:    func(a netip.Addr) netip.Prefix { return s.current.Load().ip.PrefixOf(a) },
	}
}

// An actionCollector reads the counts of actions when Prometheus scrapes.
type actionCollector struct{ table *actions.Table }

var (
	activeActions = prometheus.NewDesc("weir_actions", "Active actions of operators, by kind.", []string{"kind"}, nil)
	actionHits    = prometheus.NewDesc("weir_action_hits_total", "Requests that actions of operators applied to, by kind.",
		[]string{"kind"}, nil)
)

func (c actionCollector) Describe(out chan<- *prometheus.Desc) {
	out <- activeActions
	out <- actionHits
}

func (c actionCollector) Collect(out chan<- prometheus.Metric) {
	counts := map[actions.Kind]int{}
	for _, a := range c.table.List() {
		counts[a.Kind]++
	}
	for _, k := range actions.Kinds {
		out <- prometheus.MustNewConstMetric(activeActions, prometheus.GaugeValue, float64(counts[k]), string(k))
		out <- prometheus.MustNewConstMetric(actionHits, prometheus.CounterValue, float64(c.table.Hits(k)), string(k))
	}
}
