package serve

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/metering"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/rules"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// A Trial answers requests one after the other by the rules of a file, as a new server would. The time does not pass,
// and all limits are in memory. If a request would have to wait, it is refused. Only one goroutine may use a Trial.
type Trial struct {
	file     *rulefile.File
	rules    []*rules.Rule
	exempt   func(*http.Request) bool
	cors     *cors
	fields   fieldsRead
	meters   *metering.Meters
	states   metering.States
	limits   *httplimit.Middleware
	limiters []*engine.Limiter

	refusedBy []string // rules that refused the last request
}

const trialKeys = 1000

// NewTrial returns a trial of a valid file. The caller must close it.
func NewTrial(file *rulefile.File) (_ *Trial, err error) {
	t := &Trial{file: file}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	ip, err := rules.PeerIP(file)
	if err != nil {
		return nil, err
	}
	if t.rules, err = rules.Compile(file, rules.Trusted{Client: ip}); err != nil {
		return nil, err
	}
	now := time.Unix(1_000_000_000, 0)
	clock := func() time.Time { return now }
	limits := make([]httplimit.Limit, len(t.rules))
	for i, rule := range t.rules {
		limiter, err := rule.NewLimiter(engine.ClockFunc(clock), engine.MaxKeys(trialKeys))
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", rule.Name, err)
		}
		t.limiters = append(t.limiters, limiter)
		limits[i] = rule.Limit()
		limits[i].Limiter, limits[i].MaxWait = limiter, 0
	}
	t.exempt, t.cors, t.fields = rules.Exempt(file, ip), newCORS(file), newFieldsRead(file, t.rules)
	t.states.Clock = clock
	if t.meters, err = metersOf(t.rules, &t.states, ip.Prefix); err != nil {
		return nil, err
	}
	options, err := answerOptions(file, t.meters)
	if err != nil {
		return nil, err
	}
	options = append(options, httplimit.Clock(clock), httplimit.OnLimited(func(_ *http.Request, c httplimit.Check) {
		if !c.Shadow() {
			t.refusedBy = append(t.refusedBy, c.Name())
		}
	}))
	if t.exempt != nil {
		options = append(options, httplimit.Skip(t.exempt))
	}
	t.limits, err = httplimit.New(limits, options...)
	return t, err
}

// Close frees the memory of the limits.
func (t *Trial) Close() (err error) {
	for _, l := range t.limiters {
		err = errors.Join(err, l.Close())
	}
	return err
}

// Answered returns the status and the reason of an answer that weir gives before any rule decides. For other requests,
// the status is 0.
func (t *Trial) Answered(r *http.Request) (status int, reason string) {
	if t.cors.isPreflight(r) {
		return http.StatusNoContent, "cors answers preflights"
	}
	return refuseBeforeRules(r, t.file, &t.fields)
}

// Rules returns all rules, in the order of the file.
func (t *Trial) Rules() []*rules.Rule { return t.rules }

// IsExempt reports whether no rule applies to the request.
func (t *Trial) IsExempt(r *http.Request) bool { return t.exempt != nil && t.exempt(r) }

// Counting returns the rules that apply to the request, in the order of the file: those that count it and those that
// always refuse it.
func (t *Trial) Counting(r *http.Request) (list []*rules.Rule) {
	if status, _ := t.Answered(r); status != 0 || t.IsExempt(r) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(t.rules), func(rule *rules.Rule) bool {
		l := rule.Limit()
		return !l.Match(r) || rule.KeyTexts(r) == nil
	})
}

// Ask returns the status of the answer, and what refuses the request: the names of rules, or weir itself.
// The result refuser is "" if nothing refuses the request. The parameter upstream is the status that the upstream would
// answer, without a body.
func (t *Trial) Ask(r *http.Request, upstream int) (status int, refuser string) {
	if status, reason := t.Answered(r); status == http.StatusNoContent {
		return status, ""
	} else if status != 0 {
		return status, "weir itself: " + reason
	}
	w := httptest.NewRecorder()
	t.refusedBy = t.refusedBy[:0]
	answer := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(upstream) }
	if t.meters == nil || t.IsExempt(r) {
		t.limits.Handler(http.HandlerFunc(answer)).ServeHTTP(w, r)
	} else {
		read, done, err := t.meters.Read(r)
		if err != nil {
			return http.StatusServiceUnavailable, "weir itself: " + err.Error()
		}
		defer done()
		serveMetered(w, read, t.limits, t.meters, r.Context(), t.states.Clock(), answer, func() metering.Settled {
			return metering.Settled{Complete: true, Reached: true}
		})
	}
	return w.Code, strings.Join(t.refusedBy, ", ")
}
