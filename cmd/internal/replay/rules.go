package replay

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/rules"
	"github.com/weir-go/weir/cmd/internal/trace"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits"
)

// RulesReport has the results of a rule file for the requests of a log.
type RulesReport struct {
	Log
	NotHTTP uint64 // logged requests that are not HTTP; a server answers these before any limit
	Refused uint64 // requests that a rule refused
	// AsLogged is how many requests a rule refuses in the order of the log: see [Outcome].
	AsLogged uint64
	Series   Series // counts of all requests
	Rules    []RuleReport
}

// RuleReport has the results of one rule.
type RuleReport struct {
	Rule  *rulefile.Rule
	Blind string   // why the rule was not judged; "" if it was
	Notes []string // what a server would judge differently
	Outcome
	// Matched is how many requests the rule counts. Refused is how many of these it refuses or, in shadow mode, would
	// refuse.
	Matched uint64
	// Elsewhere is how many requests another rule refused although this rule would have admitted them. For a shadow
	// rule, it is how many of the rule's requests another rule refused.
	Elsewhere uint64
	Keys      uint64
	Series    Series
	Trace     *trace.Trace // the requests that it counts; nil unless Trace was set
	Names     []string     // names of the keys in Trace
}

// Close deletes the stored requests.
func (r *RulesReport) Close() (err error) {
	for i := range r.Rules {
		if t := r.Rules[i].Trace; t != nil {
			err = errors.Join(err, t.Close())
		}
	}
	return err
}

// RulesOptions says how a rule file is replayed.
type RulesOptions struct {
	Host  string // the host of requests whose host is not in the log; "" if it is unknown
	Trace bool   // keep the requests of each rule
}

// RunRules checks the requests of a log against the rules of a file, with the server's middleware. Each request takes
// tokens from all rules that match it, or from none. Shadow rules refuse nothing, and take tokens for admitted
// requests. The logged status determines whether tokens are given back.
//
// If a rule needs data that the log does not have, the rule is left out, with the reason. The client is the logged
// client, whichever proxies the file trusts. A limit that has its keys in a store has them in memory here.
func RunRules(f *rulefile.File, options RulesOptions, log *accesslog.Log) (*RulesReport, error) {
	return repeat(log, func(a attempt) (*RulesReport, error) { return replayRules(f, a, options, log) })
}

func replayRules(f *rulefile.File, a attempt, options RulesOptions, log *accesslog.Log) (*RulesReport, error) {
	run, err := newRun(f, a, 0)
	if err != nil {
		return nil, err
	}
	defer run.close()
	fields, err := log.Fields()
	if err != nil {
		return nil, err
	}
	r := &rulesRun{run: run, options: options, requests: newRequests(options.Host), judged: map[string]*tally{}}
	if err := r.compile(f, &logFields{fields, options.Host}); err != nil {
		return nil, err
	}
	err = r.read(log, r.request, r.requestAsLogged)
	result := r.result()
	if err != nil {
		return nil, errors.Join(err, result.Close())
	}
	return result, nil
}

type rulesRun struct {
	*run
	options   RulesOptions
	requests  *requests
	report    RulesReport
	tallies   []*tally // one for each rule, in the order of the rules
	judged    map[string]*tally
	limits    *httplimit.Middleware // of the rules that are judged; nil if there are none
	logLimits *httplimit.Middleware // like limits, for requests in the order of the log
}

// A tally has the results for the requests that a rule counts.
type tally struct {
	rule    *rules.Rule
	limit   httplimit.Limit // has no Limiter if the rule cannot be judged
	report  RuleReport
	clients map[engine.Key]*ruleClient
}

type ruleClient struct {
	name              string
	number            uint32
	requests, refused uint64
}

// compile makes the middleware of the rules that can be judged from the log.
func (r *rulesRun) compile(f *rulefile.File, l *logFields) error {
	client := logClient{r.clients.ip}
	compiled, err := rules.Compile(f, rules.Trusted{Client: client})
	if err != nil {
		return err
	}
	r.requests.require(rules.ExemptReads(f)...)
	for _, rule := range compiled {
		reads := rule.Reads()
		r.requests.require(slices.Concat(reads.Match, reads.Key, reads.Tier, reads.Quota, reads.Cost)...)
		t := &tally{
			rule:  rule,
			limit: rule.Limit(),
			report: RuleReport{Rule: rule.Rule, Blind: l.blindReason(rule),
				Outcome: Outcome{Policy: rule.Policy}},
			clients: map[engine.Key]*ruleClient{},
		}
		r.tallies = append(r.tallies, t)
		if t.report.Blind != "" {
			continue
		}
		if r.options.Trace {
			t.report.Trace = &trace.Trace{}
		}
		t.report.Notes = append(l.notes(rule), l.exemptNotes(f)...)
		r.judged[rule.Name] = t
	}
	if len(r.judged) == 0 {
		return nil
	}
	exempt := rules.Exempt(f, client)
	if r.limits, err = r.middleware(&r.clock, exempt); err == nil && r.asLogged {
		r.logLimits, err = r.middleware(&r.logClock, exempt)
	}
	return err
}

// middleware makes the middleware of the rules that are judged. Its time comes from a clock.
func (r *rulesRun) middleware(c *clock, exempt func(*http.Request) bool) (*httplimit.Middleware, error) {
	var list []httplimit.Limit
	for _, t := range r.tallies {
		if t.report.Blind != "" {
			continue
		}
		l, err := t.rule.NewLimiter(engine.ClockFunc(c.now), engine.MaxKeys(min(t.rule.MaxKeys, r.room)))
		if err != nil {
			return nil, err
		}
		r.limiters = append(r.limiters, l)
		limit := t.limit
		limit.Limiter = l
		if c == &r.clock {
			t.limit = limit
		}
		list = append(list, limit)
	}
	// A request that would wait gets its tokens at once, without a pause. The time of the log does not depend on when a
	// request is passed on.
	options := []httplimit.Option{httplimit.Pause(func(context.Context, time.Duration) error { return nil })}
	if exempt != nil {
		options = append(options, httplimit.Skip(exempt))
	}
	return httplimit.New(list, options...)
}

// request decides one request according to the rules that match it.
func (r *rulesRun) request(e *accesslog.Entry, now time.Time) error {
	request, ok := r.requests.fromEntry(e)
	if !ok {
		r.report.NotHTTP++
		r.report.Series.add(now, false)
		return nil
	}
	var result httplimit.Result // of a middleware without rules
	if r.limits != nil {
		result = r.limits.Decide(request)
	}
	for i := range result.Len() {
		if err := r.count(request, *result.Check(i), result.Allowed(), e.Status, now); err != nil {
			return err
		}
	}
	result.Finish(request, e.Status)
	if !result.Allowed() {
		r.report.Refused++
	}
	r.report.Series.add(now, !result.Allowed())
	return nil
}

// requestAsLogged decides one request according to the rules, in the order of the log.
func (r *rulesRun) requestAsLogged(e *accesslog.Entry, _ time.Time) error {
	request, ok := r.requests.fromEntry(e)
	if !ok || r.logLimits == nil {
		return nil
	}
	result := r.logLimits.Decide(request)
	for i := range result.Len() {
		if check := result.Check(i); isRefused(check.Outcome) {
			r.judged[check.Name()].report.AsLogged++
		}
	}
	result.Finish(request, e.Status)
	if !result.Allowed() {
		r.report.AsLogged++
	}
	return nil
}

func isRefused(o limits.Outcome) bool { return o == limits.Refused || o == limits.ShadowRefused }

// count notes the decision of a rule, and whether all rules admitted the request.
func (r *rulesRun) count(request *http.Request, check httplimit.Check, allowed bool, status int, now time.Time) error {
	t := r.judged[check.Name()]
	c := t.client(request, check, r.clients.ip)
	t.report.Matched++
	c.requests++
	refused := isRefused(check.Outcome)
	switch {
	case refused:
		t.report.Refused++
		c.refused++
	case !allowed:
		t.report.Elsewhere++
	default:
		t.report.Allowed++
	}
	t.report.Series.add(now, refused)
	if t.report.Trace != nil {
		refund := t.limit.Refund != nil && t.limit.Refund(request, status)
		return t.report.Trace.Add(trace.Request{
			UnixNano: now.UnixNano(), Cost: check.N, Key: c.number, Tier: uint8(check.Tier), Refund: refund,
		})
	}
	return nil
}

// client returns the client whose key is charged for the request. A client stays the same if its tier changes.
func (t *tally) client(request *http.Request, check httplimit.Check, ip *httplimit.ClientIP) *ruleClient {
	key := check.Key().Tier(0)
	c := t.clients[key]
	if c == nil {
		c = &ruleClient{name: keyName(ip, t.rule.KeyTexts(request)), number: uint32(len(t.clients))}
		t.clients[key] = c
		if t.report.Trace != nil {
			t.report.Names = append(t.report.Names, c.name)
		}
	}
	return c
}

// result returns the report, including the numbers that are known only at the end.
func (r *rulesRun) result() *RulesReport {
	r.report.Log = r.log
	if !r.asLogged {
		r.report.AsLogged = r.report.Refused
	}
	for _, t := range r.tallies {
		o := &t.report
		if !r.asLogged {
			o.AsLogged = o.Refused
		}
		if t.limit.Limiter != nil {
			stats := t.limit.Limiter.Stats()
			o.Evictions, o.ForgivenTokens = stats.Evictions, stats.Forgiven
		}
		o.Keys = uint64(len(t.clients))
		for _, c := range t.clients {
			if c.refused > 0 {
				o.RefusedKeys = append(o.RefusedKeys, Key{c.name, c.requests, c.refused})
			}
		}
		sortKeys(o.RefusedKeys)
		r.report.Rules = append(r.report.Rules, *o)
	}
	return &r.report
}

// sortKeys sorts keys by the number of their refusals, the largest first, and then by name.
func sortKeys(keys []Key) {
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Name, b.Name))
	})
}
