package metering

import (
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/usage"
)

// A Meter is a rule whose cost comes from the answer. It is safe for concurrent use.
type Meter struct {
	Rule   string
	tokens *rulefile.Tokens
	fields *usage.Fields // the fields in the body; nil if the cost is in a header or trailer
	match  func(*http.Request) bool
	state  *State
}

// A State has what was learned and counted for a rule. It outlives the configuration of the rule.
type State struct {
	learned    usage.Learned
	heldTokens atomic.Int64
	settled    [numReasons]atomic.Uint64 // number of tokens
	ended      [numReasons]atomic.Uint64 // number of requests
	badFields  atomic.Uint64             // number of fields in usages that are not counts
	unread     atomic.Uint64             // number of answers whose encoding could not be read
	lost       atomic.Uint64             // number of tokens that were not charged because of MaxDebt
	clamped    atomic.Uint64             // number of requests whose bound was lowered
	ratio      histogram
	warned     [len(warnings)]atomic.Uint64 // number of requests
	watch      watch
}

// States has the states of all rules, by name. The zero States has none.
type States struct {
	Clock func() time.Time // set before the States is used; nil is the clock of the system

	mu     sync.Mutex
	byRule map[string]*State
	room   room
}

func (s *States) now() time.Time {
	if s.Clock == nil {
		return time.Now()
	}
	return s.Clock()
}

// Of returns the state of a rule, and makes it if it does not exist.
func (s *States) Of(rule string) *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byRule == nil {
		s.byRule = map[string]*State{}
	}
	if s.byRule[rule] == nil {
		s.byRule[rule] = &State{}
	}
	return s.byRule[rule]
}

// Keep forgets the states of rules that have no meter in meters.
func (s *States) Keep(meters *Meters) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.byRule, func(rule string, _ *State) bool { return meters.Of(rule) == nil })
}

// NewMeter returns the meter of a rule whose Tokens is set. match reports whether the rule applies to a request.
func NewMeter(rule *rulefile.Rule, match func(*http.Request) bool, states *States) (*Meter, error) {
	m := &Meter{Rule: rule.Name, tokens: rule.Tokens, match: match, state: states.Of(rule.Name)}
	switch rule.Tokens.From.Kind {
	case "":
		m.fields = usage.Models
	case rulefile.InJSON:
		f, err := usage.Path(rule.Tokens.From.Name)
		if err != nil {
			return nil, err
		}
		m.fields = f
	case rulefile.InHeader, rulefile.InTrailer:
	}
	return m, nil
}

// Estimate returns how many tokens are held for a request that was read, at least 1.
func (m *Meter) Estimate(r *http.Request) uint64 {
	q := requestOf(r)
	switch m.tokens.Estimate.Kind {
	case rulefile.EstimateNone:
		return 1
	case rulefile.EstimateFixed:
		return m.toTokens(m.tokens.Estimate.N)
	case rulefile.EstimateWorst, rulefile.EstimateLearned:
	}
	worst := m.units(q, q.body.Input(), q.output(m.tokens.DefaultOutput))
	if m.tokens.Estimate.Kind == rulefile.EstimateLearned {
		if usual, known := m.state.learned.Usual(q.model()); known && q.isTypical() {
			worst = min(worst, usual)
		}
	}
	return max(worst, 1)
}

// weights returns the weights of the request's tokens. If the request was not read completely, its model counts as
// unknown, because the rest of the body could name another model.
func (m *Meter) weights(q *Request) usage.Weights {
	if len(m.tokens.Count.Models) == 0 {
		return m.tokens.Count.Weights
	}
	return m.tokens.Count.WeightsOf(q.model())
}

func (m *Meter) units(q *Request, input, output uint64) uint64 {
	return m.toTokens(m.weights(q).Estimate(input, output))
}

// toTokens converts units to tokens of the limit. It rounds up, so that no request with a cost is free.
func (m *Meter) toTokens(units uint64) uint64 {
	if m.tokens.Scale <= 1 {
		return units
	}
	n := units / m.tokens.Scale
	if units%m.tokens.Scale > 0 {
		n++
	}
	return n
}

// cost returns the cost of a reported usage under the rule. If the answer does not report the input, cost estimates it.
func (m *Meter) cost(u usage.Usage, q *Request) uint64 {
	if m.tokens.From != (rulefile.CostPlace{}) {
		return u.Cost
	}
	if u.NoInput {
		u.Input = q.body.Input()
		u.Total += u.Input
	}
	return m.toTokens(m.weights(q).Cost(u))
}

// deliveredCost returns the cost of a request for its prompt and the text that its answer had so far. The parameter
// text is the number of bytes of this text.
func (m *Meter) deliveredCost(q *Request, text uint64) uint64 {
	if m.tokens.From != (rulefile.CostPlace{}) {
		return 0
	}
	return m.units(q, q.body.Input(), (text+3)/4)
}
