package admin

import (
	"time"

	"github.com/prometheus/procfs"

	"github.com/weir-go/weir/engine"
)

// A state is the content of the page and of /state.json.
type state struct {
	Program   string        `json:"program"`
	Version   string        `json:"version"`
	At        time.Time     `json:"at"`
	Seq       uint64        `json:"seq"` // seconds that were counted
	Ready     bool          `json:"ready"`
	Why       string        `json:"why_not_ready,omitempty"`
	Keys      Keys          `json:"keys"` // how keys are shown
	Reload    *reloadView   `json:"reload"`
	Requests  *requestsView `json:"requests"` // null if they are unknown
	Upstreams []Upstream    `json:"upstreams"`
	Resident  uint64        `json:"resident_bytes"` // resident memory; 0 if the system does not report it
	Reset     bool          `json:"reset"`          // whether keys may be reset
	Tables    []tableView   `json:"tables"`         // the tables that several rules share
	Rules     []ruleView    `json:"rules"`
	Store     *storeView    `json:"store"`   // null if no rule is in a store
	Refused   *topView      `json:"refused"` // null if keys are not shown
	Actions   []actionView  `json:"actions"` // null if actions are not configured
}

type reloadView struct {
	At         time.Time `json:"at"`
	OK         bool      `json:"ok"`
	Error      string    `json:"error,omitempty"`
	Generation uint64    `json:"generation"`
}

type ruleView struct {
	Name   string             `json:"name"`
	Policy string             `json:"policy"`
	For    string             `json:"for"`
	By     string             `json:"by"`
	Shadow bool               `json:"shadow"`
	Parts  []string           `json:"parts"`
	Mode   string             `json:"mode"`   // local, strict or leased
	Leases *leaseView         `json:"leases"` // null if the limit is not in a store
	Form   bool               `json:"form"`   // whether the page has a form for its keys
	Total  map[string]uint64  `json:"total"`  // requests so far, by outcome
	Rate   map[string]float32 `json:"rate"`   // the rates in the last second
	Tokens *Tokens            `json:"tokens"` // null for a rule whose cost does not come from the answers
	Table  *tableView         `json:"table"`  // null for a limit in a store
}

type tableView struct {
	Name       string `json:"name,omitempty"` // of a table that several rules share
	Keys       uint64 `json:"keys"`
	Slots      uint64 `json:"slots"`
	Bytes      uint64 `json:"bytes"`
	Evictions  uint64 `json:"evictions"`
	Forgiven   uint64 `json:"forgiven_tokens"`
	NoRoom     uint64 `json:"no_room_refusals"`
	Unrecorded uint64 `json:"unrecorded_requests"`
	Reclaimed  uint64 `json:"reclaimed_keys"`
	Retries    uint64 `json:"retries"`
	FileLost   bool   `json:"file_lost"`
}

type topView struct {
	Keys []topKey `json:"keys"`
	All  uint64   `json:"all"` // refusals of all keys
}

// A topKey is a key that was refused often. Lower and Upper are bounds on how often all rules together refused it.
type topKey struct {
	Key   string    `json:"key,omitempty"` // the text of the key, if keys are shown in full
	Hash  string    `json:"hash"`
	Lower uint64    `json:"least"`
	Upper uint64    `json:"most"`
	Rules []topRule `json:"rules"` // the rules that refused it, the rule with the most refusals first
}

// A topRule is a rule that refused a key. Lower is a lower bound on how often.
type topRule struct {
	Rule  string `json:"rule"`
	Lower uint64 `json:"least"`
}

func (a *Admin) state(now time.Time) state {
	s := state{Program: a.config.Program, Reset: !a.config.NoReset, Tables: []tableView{}, Version: a.config.Version, At: now, Ready: true, Keys: a.config.Keys, Rules: []ruleView{}, Upstreams: []Upstream{}}
	if err := a.ready(); err != nil {
		s.Ready, s.Why = false, err.Error()
	}
	if last := a.reload(); !last.At.IsZero() {
		s.Reload = &reloadView{last.At, last.OK, last.Error, last.Generation}
	}
	s.Resident = resident()
	if a.config.Upstreams != nil {
		s.Upstreams = append(s.Upstreams, a.config.Upstreams()...)
	}
	if a.config.Tables != nil {
		for _, t := range a.config.Tables() {
			s.Tables = append(s.Tables, viewOf(t.Name, t.Stats))
		}
	}
	seq, rates := a.history.latest()
	s.Seq = seq
	rules := a.rules()
	for _, r := range rules {
		s.Rules = append(s.Rules, a.ruleView(r, rates[r.Name]))
	}
	if a.config.Requests != nil {
		s.Requests = a.requests.latest()
	}
	s.Store = storeOf(rules)
	if a.config.Actions != nil {
		s.Actions = a.actionViews(rules)
	}
	if a.config.Keys != KeysOff {
		s.Refused = a.top(rules)
	}
	return s
}

func (a *Admin) ruleView(r Rule, rates [numOutcomes]float32) ruleView {
	v := ruleView{
		Mode: modeOf(r), Leases: leasesOf(r),
		Name: r.Name, Policy: r.Policy, For: r.For, By: r.By, Shadow: r.Shadow, Parts: r.Parts, Form: r.Buckets != nil,
		Total: make(map[string]uint64, len(countedOutcomes)), Rate: make(map[string]float32, len(countedOutcomes)),
	}
	counts := a.totals(r.Name)
	for _, o := range countedOutcomes {
		v.Total[o.String()], v.Rate[o.String()] = counts[o], rates[o]
	}
	if r.Tokens != nil {
		tokens := r.Tokens()
		v.Tokens = &tokens
	}
	if r.Limiter != nil {
		table := viewOf("", r.Limiter.Stats())
		v.Table = &table
	}
	return v
}

func viewOf(name string, s engine.Stats) tableView {
	return tableView{
		Name: name, Keys: s.Keys, Slots: s.Slots, Bytes: s.Bytes, Evictions: s.Evictions, Forgiven: s.Forgiven,
		NoRoom: s.NoRoom, Unrecorded: s.Unrecorded, Reclaimed: s.Reclaimed, Retries: s.Retries, FileLost: s.FileLost != nil,
	}
}

func (a *Admin) top(rules []Rule) *topView {
	labels := make(map[string][]string, len(rules))
	for _, r := range rules {
		labels[r.Name] = r.Parts
	}
	clients, total := a.refusals.top(topKeys)
	v := &topView{Keys: make([]topKey, len(clients)), All: total}
	for i, c := range clients {
		first := c.keys[0]
		v.Keys[i] = topKey{Hash: hashText(c.hash), Lower: c.lower, Upper: c.upper}
		if a.config.Keys == KeysFull { // keys in a store have a text even if keys are hashed
			v.Keys[i].Key = readable(first.text, labels[first.rule])
		}
		for _, k := range c.keys {
			v.Keys[i].Rules = append(v.Keys[i].Rules, topRule{k.rule, k.lower})
		}
	}
	return v
}

// resident returns the program's resident memory in bytes. It returns 0 if the system does not report it.
func resident() uint64 {
	self, err := procfs.Self()
	if err != nil {
		return 0
	}
	stat, err := self.Stat()
	if err != nil {
		return 0
	}
	return uint64(stat.ResidentMemory())
}
