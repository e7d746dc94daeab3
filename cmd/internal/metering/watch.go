package metering

import (
	"sync"
	"time"

	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// warnings are percentages of a limit. For each percentage, the requests that take a key past it are counted.
var warnings = [3]uint64{50, 80, 95}

const (
	lately = time.Minute     // a key is not shown if it was not seen for this long
	pace   = 2 * time.Minute // the rate is measured over a time of pace to twice pace
)

// A watch follows one key of a rule: the key with the smallest part of its limit left.
type watch struct {
	mu          sync.Mutex
	key         watched
	left, limit uint64
	at          time.Time
	from, then  sample // the sample since which the rate is measured, and the sample that will replace it
}

type watched struct {
	of   engine.Key
	text string
}

// A sample is how much a key had left at a time.
type sample struct {
	left uint64
	at   time.Time
}

// note notes a decision about a request that has taken n tokens. If the request takes its key past a percentage in
// warnings, note returns the index of the percentage, and -1 otherwise.
func (w *watch) note(key watched, d engine.Decision, n uint64, now time.Time) (warning int) {
	warning = -1
	if d.Limit == 0 {
		return warning
	}
	used := d.Limit - min(d.Remaining, d.Limit)
	for i, percent := range warnings {
		edge := d.Limit/100*percent + d.Limit%100*percent/100
		if used >= edge && used-min(n, used) < edge {
			warning = i
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.key != key {
		least := float64(d.Remaining)/float64(d.Limit) < float64(w.left)/float64(max(w.limit, 1))
		if w.limit > 0 && !least && now.Sub(w.at) < lately {
			return warning
		}
		w.key = key
		w.from = sample{d.Remaining, now}
		w.then = w.from
	}
	w.left, w.limit, w.at = d.Remaining, d.Limit, now
	if now.Sub(w.then.at) > pace {
		w.from, w.then = w.then, sample{d.Remaining, now}
	}
	return warning
}

// Refused notes what the keys of a refused request have left. If a key is refused for a long time, only its refusals
// show this.
func (ms *Meters) Refused(res *httplimit.Result) {
	for i := range res.Len() {
		c := res.Check(i)
		if m := ms.Of(c.Name()); m != nil && c.Answered() && !c.Unlimited() {
			m.state.watch.note(watched{c.Key(), c.Text()}, c.Decision, 0, ms.states.now())
		}
	}
}

// budget returns how much the followed key has left, and when this will be used up. It is nil if no key was seen
// recently.
func (w *watch) budget(now time.Time) *admin.Budget {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limit == 0 || now.Sub(w.at) >= lately {
		return nil
	}
	b := &admin.Budget{Left: w.left, Limit: w.limit}
	if spent, in := w.from.left-min(w.left, w.from.left), w.at.Sub(w.from.at); spent > 0 && in > 0 {
		b.Ends = float64(w.left) / float64(spent) * in.Seconds()
	}
	return b
}

// Shown returns a function for the live page that returns a rule's counts. It returns nil if the rule has no meter.
func (ms *Meters) Shown(rule string) func() admin.Tokens {
	m := ms.Of(rule)
	if m == nil {
		return nil
	}
	s := m.state
	return func() admin.Tokens {
		t := admin.Tokens{Held: s.held.Load(), Median: s.ratio.quantile(0.5), P95: s.ratio.quantile(0.95), Tightest: s.watch.budget(ms.states.now())}
		for by := range reasons {
			t.Settled += s.settled[by].Load()
		}
		t.Unknown = s.ended[kept].Load() + s.ended[delivered].Load() + s.ended[free].Load()
		for i := range s.warned {
			t.Warned[i] = s.warned[i].Load()
		}
		return t
	}
}
