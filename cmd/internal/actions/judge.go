package actions

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/weir-go/weir/limits"
)

// A snapshot has the active actions, arranged for a fast search. It is immutable.
type snapshot struct {
	actions  []*Active
	bits     []int // the prefix lengths of the networks of both families, longest first
	networks map[netip.Prefix]*Active
	rules    map[string]*ruleActions
}

type ruleActions struct {
	rule *Active // the action for the complete rule; nil for none
	keys map[KeyID]*Active
}

func newSnapshot(actions []*Active) *snapshot {
	if len(actions) == 0 {
		return nil
	}
	s := &snapshot{actions: actions, networks: map[netip.Prefix]*Active{}, rules: map[string]*ruleActions{}}
	for _, a := range actions {
		if a.Network.IsValid() {
			s.networks[a.Network] = a
			if bits := a.Network.Bits(); !slices.Contains(s.bits, bits) {
				s.bits = append(s.bits, bits)
			}
			continue
		}
		entry := s.rules[a.Rule]
		if entry == nil {
			entry = &ruleActions{keys: map[KeyID]*Active{}}
			s.rules[a.Rule] = entry
		}
		if a.IsKey() {
			entry.keys[a.Key] = a
		} else {
			entry.rule = a
		}
	}
	slices.SortFunc(s.bits, func(a, b int) int { return b - a })
	return s
}

// network returns the action for an address, or nil if there is none. The zero Addr is in no network.
func (s *snapshot) network(addr netip.Addr, now int64) *Active {
	for _, bits := range s.bits {
		p, err := addr.Prefix(bits)
		if err != nil || !p.IsValid() {
			continue // the zero Addr, or an IPv4 address, which is shorter than the prefix
		}
		if a := s.networks[p]; a.isActive(now) {
			return a
		}
	}
	return nil
}

// isActive reports whether a is not nil and the action has not ended.
func (a *Active) isActive(now int64) bool { return a != nil && now < a.Until.UnixNano() }

// Rules are the rules that apply to the requests being judged.
type Rules struct {
	Addr func(*http.Request) netip.Addr // returns the address of the client; the zero Addr if it has none
	List []Rule
}

// A Rule is one of the rules in a [Rules].
type Rule struct {
	Name  string
	Form  string // form of its keys' texts: an action for a key only applies while the rule has the same form
	Meets func(*http.Request) bool
	Text  func(*http.Request) (text string, ok bool) // text of the key; false if the rule does not count the request
}

// A Verdict is the effect of the actions on a request. The zero Verdict changes nothing.
type Verdict struct {
	Banned *Active // the action that refuses the request; nil for none
	Exempt *Active // the action that exempts the request from all rules; nil for none
	modes  []limits.Mode
}

// Any reports whether the verdict changes anything.
func (v *Verdict) Any() bool { return v.Banned != nil || v.Exempt != nil || v.modes != nil }

// Mode returns the mode of a rule. It is a function for [limits.Options].Modes.
func (v *Verdict) Mode(rule int) limits.Mode {
	switch {
	case v.Exempt != nil:
		return limits.NotApplied
	case v.modes != nil:
		return v.modes[rule]
	}
	return limits.AsWritten
}

// Any reports whether there are actions. It costs one atomic load.
func (t *Table) Any() bool { return t.current.Load() != nil }

// Judge returns what the actions mean for a request, and counts a hit for the actions that apply.
func (t *Table) Judge(rules *Rules, r *http.Request) (v Verdict) {
	s := t.current.Load()
	if s == nil {
		return v
	}
	now := t.config.Now().UnixNano()
	network := s.network(rules.Addr(r), now)
	if network != nil && network.Kind != Shadow {
		t.hit(network)
		if network.Kind == Exempt {
			v.Exempt = network
		} else {
			v.Banned = network
		}
		return v
	}
	if network == nil && len(s.rules) == 0 {
		return v
	}
	hits := make([]*Active, 0, 4)
	modes := make([]limits.Mode, len(rules.List))
	for i := range rules.List {
		a := s.forRule(&rules.List[i], r, now, t.KeyID)
		if a == nil {
			a = network
		}
		if a == nil {
			continue
		}
		switch a.Kind {
		case Ban:
			t.hit(a)
			return Verdict{Banned: a}
		case Exempt:
			modes[i] = limits.NotApplied
		case Shadow:
			modes[i] = limits.InShadow
		}
		if !slices.Contains(hits, a) {
			hits = append(hits, a)
		}
	}
	for _, a := range hits {
		t.hit(a)
	}
	if len(hits) > 0 {
		v.modes = modes
	}
	return v
}

// forRule returns the action for a request under a rule. It is the action for the request's key, or else the action for
// the complete rule. It is nil if there is neither.
func (s *snapshot) forRule(rule *Rule, r *http.Request, now int64, id func(string) KeyID) *Active {
	entry := s.rules[rule.Name]
	if entry == nil || !rule.Meets(r) {
		return nil
	}
	if len(entry.keys) > 0 {
		if text, ok := rule.Text(r); ok {
			if a := entry.keys[id(text)]; a.isActive(now) && a.Form == rule.Form {
				return a
			}
		}
	}
	if entry.rule.isActive(now) {
		return entry.rule
	}
	return nil
}

func (t *Table) hit(a *Active) {
	a.hits.Add(1)
	t.hits[slices.Index(Kinds, a.Kind)].Add(1)
}
