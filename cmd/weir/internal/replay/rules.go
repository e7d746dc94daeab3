package replay

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/accesslog"
	"github.com/weir-go/weir/cmd/weir/internal/config"
	"github.com/weir-go/weir/engine"
)

// RulesReport is what a rule file would have done to the requests of a log.
type RulesReport struct {
	Log
	NotHTTP uint64 // requests of the log that are none: a server answers them before any limit
	Refused uint64 // requests that a rule refused
	Series  Series // of all requests
	Rules   []RuleReport
}

// RuleReport is what one rule would have done.
type RuleReport struct {
	Rule  *config.Rule
	Blind string   // why the rule was not judged; "" if it was
	Notes []string // what was judged otherwise than a server would
	Outcome
	// Matched is how many requests the rule counts. Of those, Refused is how many it
	// refuses: a shadow rule would have refused them.
	Matched uint64
	// Elsewhere is how many another rule refused and this one would have let pass, or, in shadow,
	// was not asked about.
	Elsewhere uint64
	Keys      uint64
	Series    Series
	Trace     Trace // if asked for
}

// A Trace is the requests that a rule counts, in order.
type Trace struct {
	Keys     int // different ones
	Requests []Traced
}

// Traced is one request of a Trace: 24 bytes.
type Traced struct {
	UnixNano int64
	Cost     uint64
	Key      uint32 // from 0
	Tier     uint8
	Refund   bool // its answer gives the tokens back
}

// RulesOptions says how a rule file is replayed.
type RulesOptions struct {
	Host  string // for which all requests were, where the log does not say; "" if it is not known
	Trace bool   // keep the requests of each rule
}

// RunRules holds the requests of a log against the rules of a file, as a server would: each goes
// to all rules that match it, all or nothing. If one refuses, the others keep their tokens. Rules
// in shadow refuse nobody and take tokens of what is let through.
//
// Rules that match or count by what an access log does not hold are reported and take no part.
func RunRules(f *config.File, options RulesOptions, log *accesslog.Log) (*RulesReport, error) {
	r := &rulesRun{run: newRun(0), options: options}
	defer r.closeAll()
	for i := range f.Rules {
		if err := r.addRule(&f.Rules[i], f.ClientIP); err != nil {
			return nil, err
		}
	}
	if err := r.read(log, r.request); err != nil {
		return nil, err
	}
	return r.result(), nil
}

// A rulesRun is a log on its way through the rules.
type rulesRun struct {
	*run
	options RulesOptions
	report  RulesReport
	lanes   []*ruleLane
	asked   []question // of the request at hand
}

// A ruleLane is a rule, its limiter and what became of its keys.
type ruleLane struct {
	judge
	limiter *engine.Limiter // nil if the rule cannot be judged
	report  RuleReport
	clients map[string]*ruleClient
}

type ruleClient struct {
	name              string
	number            uint32
	key               engine.Key
	requests, refused uint64
}

// A question is what a request asks of one rule.
type question struct {
	lane    *ruleLane
	client  *ruleClient
	tier    int
	cost    uint64
	refused bool
}

func (q *question) key() engine.Key { return q.client.key.Tier(q.tier) }

func (r *rulesRun) addRule(rule *config.Rule, client config.ClientIP) error {
	l := &ruleLane{judge: judge{rule, client}, clients: map[string]*ruleClient{}}
	l.report = RuleReport{Rule: rule, Blind: blind(rule, r.options.Host), Outcome: Outcome{Policy: rule.Policy}}
	if l.report.Blind == "" {
		l.report.Notes = notes(rule)
		var err error
		if l.limiter, err = rule.NewLimiter(engine.ClockFunc(r.clock.now)); err != nil {
			return err
		}
	}
	r.lanes = append(r.lanes, l)
	return nil
}

func (r *rulesRun) closeAll() {
	for _, l := range r.lanes {
		if l.limiter != nil {
			_ = l.limiter.Close() // always nil
		}
	}
}

// request takes one request through the rules that match it.
func (r *rulesRun) request(e *accesslog.Entry, now time.Time) {
	request, ok := requestOf(e, r.options.Host)
	if !ok {
		r.report.NotHTTP++
		r.report.Series.add(now, false)
		return
	}
	r.ask(request, string(e.Client))
	refused := false
	for i := range r.asked {
		q := &r.asked[i]
		q.refused = !q.lane.limiter.PeekKey(q.key(), q.cost).Allowed
		refused = refused || q.refused && !q.lane.rule.Shadow
	}
	for i := range r.asked {
		r.settle(&r.asked[i], now, refused, e.Status)
	}
	if refused {
		r.report.Refused++
	}
	r.report.Series.add(now, refused)
}

// ask finds the rules that match.
func (r *rulesRun) ask(request *http.Request, host string) {
	r.asked = r.asked[:0]
	for _, l := range r.lanes {
		if l.limiter == nil || !l.rule.Match.Matches(request) {
			continue
		}
		key, name, ok := l.key(request, host)
		if !ok {
			continue
		}
		c := l.clients[key]
		if c == nil {
			c = &ruleClient{name: name, number: uint32(len(l.clients)), key: l.limiter.Key(key)}
			l.clients[key] = c
		}
		r.asked = append(r.asked, question{lane: l, client: c, tier: l.tier(request), cost: l.cost(request)})
	}
}

// settle takes the tokens of a request that passes, gives them back where its answer says so, and
// counts.
func (r *rulesRun) settle(q *question, now time.Time, refusedByAny bool, status int) {
	l, c := q.lane, q.client
	refund := l.rule.Refund.Contains(status)
	if !refusedByAny && !q.refused {
		l.limiter.TakeAt(q.key(), q.cost, now)
		if refund {
			l.limiter.RefundKey(q.key(), q.cost)
		}
	}
	l.report.Matched++
	c.requests++
	refused := q.refused && !(l.rule.Shadow && refusedByAny) // a shadow is not asked then
	switch {
	case refused:
		l.report.Refused++
		c.refused++
	case refusedByAny:
		l.report.Elsewhere++
	default:
		l.report.Allowed++
	}
	l.report.Series.add(now, refused)
	if r.options.Trace {
		l.report.Trace.Requests = append(l.report.Trace.Requests,
			Traced{now.UnixNano(), q.cost, c.number, uint8(q.tier), refund})
	}
}

// result fills in what is known only at the end.
func (r *rulesRun) result() *RulesReport {
	r.report.Log = r.log
	for _, l := range r.lanes {
		o := &l.report
		if l.limiter != nil {
			stats := l.limiter.Stats()
			o.Evictions, o.ForgivenTokens = stats.Evictions, stats.Forgiven
		}
		o.Keys, o.Trace.Keys = uint64(len(l.clients)), len(l.clients)
		for _, c := range l.clients {
			if c.refused > 0 {
				o.RefusedKeys = append(o.RefusedKeys, Key{c.name, c.requests, c.refused})
			}
		}
		sortKeys(o.RefusedKeys)
		r.report.Rules = append(r.report.Rules, *o)
	}
	return &r.report
}

// sortKeys puts those most refused first, then goes by name.
func sortKeys(keys []Key) {
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Name, b.Name))
	})
}
