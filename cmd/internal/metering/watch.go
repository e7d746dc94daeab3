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
	maxIdle    = time.Minute     // a key is not shown if it was not seen for this long
	ratePeriod = 2 * time.Minute // the rate is measured over one to two such periods
)

// A watch follows one key of a rule: the key with the smallest part of its limit left.
type watch struct {
	mu          sync.Mutex
	key         watchedKey
	left, limit uint64
	at          time.Time
	from, next  sample // the sample since which the rate is measured, and the sample that will replace it
}

type watchedKey struct {
	key  engine.Key
	text string
}

// A sample is how much a key had left at a time.
type sample struct {
	left uint64
	at   time.Time
}

// note notes a decision about a request that has taken n tokens. If the request takes its key past a percentage in
// warnings, note returns the index of the percentage, and -1 otherwise.
func (w *watch) note(key watchedKey, d engine.Decision, n uint64, now time.Time) (warning int) {
	warning = -1
	if d.Limit == 0 {
		return warning
	}
	used := d.Limit - min(d.Remaining, d.Limit)
	for i, percent := range warnings {
		threshold := d.Limit/100*percent + d.Limit%100*percent/100
		if used >= threshold && used-min(n, used) < threshold {
			warning = i
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.key != key {
		tighter := float64(d.Remaining)/float64(d.Limit) < float64(w.left)/float64(max(w.limit, 1))
		if w.limit > 0 && !tighter && now.Sub(w.at) < maxIdle {
			return warning
		}
		w.key = key
		w.from = sample{d.Remaining, now}
		w.next = w.from
	}
	w.left, w.limit, w.at = d.Remaining, d.Limit, now
	if now.Sub(w.next.at) > ratePeriod {
		w.from, w.next = w.next, sample{d.Remaining, now}
	}
	return warning
}

// Refused notes what the keys of a refused request have left. If a key is refused for a long time, only its refusals
// show this.
func (ms *Meters) Refused(res *httplimit.Result) {
	for i := range res.Len() {
		c := res.Check(i)
		if m := ms.Of(c.Name()); m != nil && c.Answered() && !c.Unlimited() {
			m.state.watch.note(watchedKey{c.Key(), c.Text()}, c.Decision, 0, ms.states.now())
		}
	}
}

// budget returns how much the followed key has left, and when this will be used up. It is nil if no key was seen
// recently.
func (w *watch) budget(now time.Time) *admin.Budget {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limit == 0 || now.Sub(w.at) >= maxIdle {
		return nil
	}
	b := &admin.Budget{Left: w.left, Limit: w.limit}
	if spent, elapsed := w.from.left-min(w.left, w.from.left), w.at.Sub(w.from.at); spent > 0 && elapsed > 0 {
		b.Ends = float64(w.left) / float64(spent) * elapsed.Seconds()
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
		t := admin.Tokens{Held: s.heldTokens.Load(), Median: s.ratio.quantile(0.5), P95: s.ratio.quantile(0.95), Tightest: s.watch.budget(ms.states.now())}
		for r := range numReasons {
			t.Settled += s.settled[r].Load()
		}
		t.Unknown = s.ended[reasonKept].Load() + s.ended[reasonDelivered].Load() + s.ended[reasonFree].Load()
		for i := range s.warned {
			t.Warned[i] = s.warned[i].Load()
		}
		return t
	}
}
