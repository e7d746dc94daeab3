package admin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/redislimit"
)

// A Config configures the administrator's endpoint. Any goroutine may call its functions. Only Rules is required.
type Config struct {
	// Rules returns the current rules. It is called once per second and at every scrape. Its result must not change.
	Rules func() []Rule
	// Keys says how refused keys are shown; "" means hashed.
	Keys Keys
	// Pprof adds the profiles of net/http/pprof.
	Pprof bool
	// Ready returns why the server should get no requests, or nil.
	Ready   func() error
	Version string
	// Reloads returns the last reload, or the zero Reload if there was none.
	Reloads func() Reload
	// Requests returns the counts of requests so far. nil leaves them out of the page.
	Requests func() Requests
	// Upstreams returns the servers to which requests are passed, by name. nil means none.
	Upstreams func() []Upstream
	// Hosts are additional names, in lower case, for the Host header of requests to the page.
	Hosts []string
	// Tables returns shared tables that are not the table of any rule's Limiter. nil means none.
	Tables func() []Table
	// NoReset forbids resets of keys. Set it if people other than the operator can reach the listener.
	NoReset bool
	// Program is the name of the program on the page. It also selects the words of the page (page/words.js). "" means
	// weir.
	Program string
	// Access returns the valid tokens. If Access is nil or returns nil, every caller may do everything.
	Access func() *Access
	// Actions configures timed actions. nil means none.
	Actions *Actions
	// Log gets a line for everything that callers do, and for each refused caller. nil means no log.
	Log        *slog.Logger
	Collectors []prometheus.Collector
}

// A Rule describes one of the limits.
type Rule struct {
	Name    string // unique; the label of the rule's metrics
	Policy  string // the policy, as text for people
	For     string // which requests the rule matches, as text for people
	By      string // what the rule's keys are, as text for people
	Shadow  bool
	Limiter *engine.Limiter // nil if the limit is in a store, so that it has no table
	// Stored is the limiter of a limit in a store. All rules use the same store.
	Stored *redislimit.Limiter
	// Buckets has the functions for the rule's keys. nil means no form on the page.
	Buckets Buckets
	// Tokens returns the token counts of a rule whose cost comes from answers. For any other rule, it is nil.
	Tokens func() Tokens
	// Parts has the labels of the parts that make up a key, such as "ip" and "header X-API-Key".
	Parts []string
	// The operator types one text for each of the Parts. Text returns the text of the key with these parts, and Form
	// describes the texts. Both fields are needed only with Config.Actions.
	Text func(parts []string) string
	Form string
}

// A Table is a table that several rules share.
type Table struct {
	Name  string // unique
	Stats engine.Stats
}

// An Upstream describes a server to which requests are passed.
type Upstream struct {
	Name     string  `json:"name"`
	Up       bool    `json:"up"` // requests are passed to it
	InFlight int64   `json:"in_flight"`
	Answered uint64  `json:"answered"` // answers so far
	Failed   uint64  `json:"failed"`   // requests so far that it did not serve
	Seconds  float64 `json:"seconds"`  // total time until the headers of all answers
}

// A Reload is the outcome of the last reload.
type Reload struct {
	At         time.Time
	OK         bool
	Error      string // why the new rules are not active; "" if they are
	Generation uint64 // number of the active generation of the rules
}

// An Admin counts the outcomes of limits and serves the counts. Make one with [New], and call Close at the end. All
// methods are safe for concurrent use.
type Admin struct {
	config   Config
	counters *counterSet
	refusals *refusals
	history  history
	requests requestRates
	watchers watchers
	handler  http.Handler

	close   sync.Once
	done    chan struct{} // closed by Close
	stopped chan struct{} // closed when run has returned
}

var _ limits.Metrics = (*Admin)(nil)

// New returns an Admin that ticks once per second.
func New(c Config) (*Admin, error) {
	a, err := build(c)
	if err != nil {
		return nil, err
	}
	a.tick(time.Now())
	go func() {
		clock := time.NewTicker(time.Second)
		defer clock.Stop()
		a.run(clock.C)
	}()
	return a, nil
}

// build returns an Admin whose clock does not run. The caller must call the method run.
func build(c Config) (*Admin, error) {
	if c.Rules == nil {
		return nil, errors.New("admin: Config.Rules is nil: want a function that returns the rules")
	}
	if err := c.Keys.check(); err != nil {
		return nil, err
	}
	c.Program, c.Log = cmp.Or(c.Program, "weir"), cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	a := &Admin{
		config: c, counters: newCounterSet(), refusals: newRefusals(),
		watchers: watchers{streams: map[chan struct{}]struct{}{}},
		done:     make(chan struct{}), stopped: make(chan struct{}),
	}
	registry, err := newRegistry(a)
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	a.handler = a.routes(registry)
	return a, nil
}

// Observe counts an outcome, as [limits.Metrics]. It takes some nanoseconds, does not allocate, and locks only at the
// first request of a limit.
func (a *Admin) Observe(limit string, o limits.Outcome) {
	if int(o) >= numOutcomes {
		return
	}
	if c := a.counters.get(limit); c != nil {
		c.add(o)
	}
}

// Limited notes the key of a refused request, unless keys are off. It is an [httplimit.OnLimited] function. For a key
// in a store, it keeps the text even if keys are hashed, because a peek at the key needs the text.
func (a *Admin) Limited(r *http.Request, c httplimit.Check) {
	if a.config.Keys == KeysOff { // no text is made
		return
	}
	if c.Key() == (engine.Key{}) && c.Limit().Spread == nil { // the limit has no Limiter
		if b := (Bucket{Text: c.KeyText(r)}); b.Text != "" {
			if c.Limit().Quota != nil {
				b.Limit = c.Policy()
			}
			a.Refused(c.Name(), b, nil)
		}
		return
	}
	a.Refused(c.Name(), Bucket{Key: c.Key()}, func() string { return c.KeyText(r) })
}

// Refused notes the key of a bucket that has refused a request, as Limited does. The function text must return the key
// as text for people. Refused rarely calls this function, and never for a bucket in a store, because b.Text is the key.
func (a *Admin) Refused(rule string, b Bucket, text func() string) {
	limit := keyLimit{b.Key, b.Limit}
	switch {
	case a.config.Keys == KeysOff:
	case b.Text != "":
		a.refusals.add(a.refusals.storedIdentity(rule, b.Text), limit, func() string { return clip(b.Text) })
	default:
		a.refusals.add(identity{rule: rule, key: b.Key.With(engine.Quota{})}, limit, func() string {
			if a.config.Keys != KeysFull && a.config.Actions == nil {
				return "" // no text is made
			}
			return a.storedText(text())
		})
	}
}

// Handler returns the handler of all paths: /metrics, /healthz, /readyz, /state.json, and the live page at /. If the
// Config has Pprof, it also serves /debug/pprof/.
func (a *Admin) Handler() http.Handler { return a.handler }

// Close ends the event streams and the clock, and returns nil. Closing twice is harmless.
func (a *Admin) Close() error {
	a.close.Do(func() { close(a.done) })
	<-a.stopped
	return nil
}

// run calls tick for each value of the channel clock, which sends one per second, until Close.
func (a *Admin) run(clock <-chan time.Time) {
	defer close(a.stopped)
	for {
		select {
		case now := <-clock:
			a.tick(now)
		case <-a.done:
			return
		}
	}
}

// tick notes what happened in the last second and sends the state to open pages.
func (a *Admin) tick(now time.Time) {
	rules := a.rules()
	names, inUse := make([]string, len(rules)), make(map[string]bool, len(rules))
	for i, r := range rules {
		names[i], inUse[r.Name] = r.Name, true
	}
	a.counters.prune(inUse)
	if a.config.Requests != nil {
		a.requests.tick(now, a.config.Requests())
	}
	seq := a.history.tick(now, names, a.totals)
	if seq%windowTicks == 0 {
		a.refusals.rotate()
	}
	if !a.watchers.hasAny() {
		return
	}
	text, err := json.Marshal(a.state(now))
	if err != nil {
		panic(fmt.Sprintf("admin: a state that is no JSON: %v", err)) // its fields are numbers and texts
	}
	a.watchers.send(&update{seq, text})
}

func (a *Admin) rules() []Rule { return a.config.Rules() }

func (a *Admin) log() *slog.Logger { return a.config.Log }

func (a *Admin) totals(rule string) totals {
	if c := (*a.counters.current.Load())[rule]; c != nil {
		return c.totals()
	}
	return totals{}
}

func (a *Admin) reload() Reload {
	if a.config.Reloads == nil {
		return Reload{}
	}
	return a.config.Reloads()
}

func (a *Admin) ready() error {
	if a.config.Ready == nil {
		return nil
	}
	return a.config.Ready()
}
