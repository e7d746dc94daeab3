package admin

import (
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// A state is what the page shows and /state.json answers.
type state struct {
	Version string      `json:"version"`
	At      time.Time   `json:"at"`
	Ready   bool        `json:"ready"`
	Why     string      `json:"why_not_ready,omitempty"`
	Keys    config.Keys `json:"keys"` // how they are shown
	Reload  *reloadView `json:"reload"`
	Rules   []ruleView  `json:"rules"`
}

type reloadView struct {
	At         time.Time `json:"at"`
	OK         bool      `json:"ok"`
	Error      string    `json:"error,omitempty"`
	Generation uint64    `json:"generation"`
}

type ruleView struct {
	Name   string            `json:"name"`
	Policy string            `json:"policy"`
	Shadow bool              `json:"shadow"`
	Parts  []string          `json:"parts"`
	Total  map[string]uint64 `json:"total"` // requests by outcome
	Table  *tableView        `json:"table"` // null for a limit that is kept elsewhere
}

type tableView struct {
	Keys       uint64 `json:"keys"`
	Slots      uint64 `json:"slots"`
	Bytes      uint64 `json:"bytes"`
	Evictions  uint64 `json:"evictions"`
	Forgiven   uint64 `json:"forgiven_tokens"`
	NoRoom     uint64 `json:"no_room_refusals"`
	Unrecorded uint64 `json:"unrecorded_requests"`
	Reclaimed  uint64 `json:"reclaimed_keys"`
	Retries    uint64 `json:"retries"`
}

func (a *Admin) state(now time.Time) state {
	s := state{Version: a.config.Version, At: now, Ready: true, Keys: a.config.Keys, Rules: []ruleView{}}
	if err := a.ready(); err != nil {
		s.Ready, s.Why = false, err.Error()
	}
	if last := a.reload(); !last.At.IsZero() {
		s.Reload = &reloadView{last.At, last.OK, last.Error, last.Generation}
	}
	for _, r := range a.rules() {
		s.Rules = append(s.Rules, a.view(r))
	}
	return s
}

func (a *Admin) view(r Rule) ruleView {
	v := ruleView{Name: r.Name, Policy: r.Policy, Shadow: r.Shadow, Total: map[string]uint64{}}
	if r.Key != nil && r.Limiter != nil {
		v.Parts = r.Parts
	}
	counts := a.totals(r.Name)
	for _, o := range counted {
		v.Total[o.String()] = counts[o]
	}
	if r.Limiter != nil {
		s := r.Limiter.Stats()
		v.Table = &tableView{
			Keys: s.Keys, Slots: s.Slots, Bytes: s.Bytes, Evictions: s.Evictions, Forgiven: s.Forgiven,
			NoRoom: s.NoRoom, Unrecorded: s.Unrecorded, Reclaimed: s.Reclaimed, Retries: s.Retries,
		}
	}
	return v
}
