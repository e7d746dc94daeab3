package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-go/weir/internal/testrace"
)

// A courseStep is one step of a course, which is a sequence of calls of a model.
type courseStep struct {
	name string
	make func(m *model)
}

// by returns a step that makes a call of the model with the given bytes as random draws.
func by(call func(m *model), draws ...byte) func(m *model) {
	return func(m *model) {
		m.program = draws
		call(m)
	}
}

// These bytes determine what a call for key 0 does.
const (
	drawsOne = 81
	askTwice = 4 // a take of which every field of the answer is compared
)

func takesOne(grant byte) courseStep {
	return courseStep{fmt.Sprint("one under ", grant), by((*model).takes, 0, grant, drawsOne, askTwice, 1)}
}

func takesAll(grant byte) courseStep {
	return courseStep{fmt.Sprint("all under ", grant), by((*model).drains, 0, grant)}
}

func setsTo(tier int, burst uint64, period time.Duration) courseStep {
	return courseStep{fmt.Sprintf("tier %d: burst %d, %v", tier, burst, period), func(m *model) {
		m.set(m.seen)
		m.sets(tier, burst, period, time.Hour)
	}}
}

func setsPaceTo(of Policy) courseStep {
	return courseStep{fmt.Sprint("paced as ", of), func(m *model) {
		m.set(m.seen)
		m.setsPace(of)
	}}
}

func allOf(steps ...courseStep) courseStep {
	var names []string
	for _, s := range steps {
		names = append(names, s.name)
	}
	return courseStep{strings.Join(names, " and "), func(m *model) {
		for _, s := range steps {
			s.make(m)
		}
	}}
}

func others(grant byte) []courseStep {
	return []courseStep{
		{fmt.Sprint("another, one under ", grant), by((*model).takes, 1, grant, drawsOne, askTwice, 1)},
		{fmt.Sprint("another, all under ", grant), by((*model).drains, 1, grant)},
	}
}

// courseSteps returns the usual steps between changes, for two grants, followed by the additional steps.
func courseSteps(one, two byte, more ...courseStep) []courseStep {
	return append([]courseStep{
		takesAll(one), takesAll(two), takesOne(one), takesOne(two),
		{"a second", by((*model).passes, 0, 1, 3)},
		{"half of what is owed", by((*model).passes, 0, 0, 5)},
		{"a sweep", (*model).sweeps},
		{"ends", by((*model).ends, 0, 3, 1)},
	}, more...)
}

type courseKind struct {
	name   string
	kind   byte
	steps  []courseStep
	length int
	full   bool
}

// courseKinds returns all kinds of courses.
func courseKinds() []courseKind {
	reserves := func(grant byte) courseStep {
		return courseStep{fmt.Sprint("reserves under ", grant), by((*model).reserves, 0, grant, drawsOne, 255)}
	}
	holds := func(grant byte) courseStep {
		return courseStep{fmt.Sprint("holds under ", grant), by((*model).holds, 0, grant, drawsOne)}
	}
	receipt := func(grant byte) courseStep {
		return courseStep{fmt.Sprint("a receipt under ", grant), by((*model).takesReceipt, 0, grant, drawsOne)}
	}
	ahead := func(grant byte) courseStep {
		return courseStep{fmt.Sprint("ahead under ", grant), by((*model).takes, 0, grant, drawsOne, 2, 128)}
	}
	const fast, slow = 11 * time.Millisecond, 10 * time.Second
	second := courseStep{"a second", by((*model).passes, 0, 1, 3)}
	rate := func(period time.Duration) courseStep { return setsPaceTo(TokenBucket(Per(1, period), 1)) }
	batch := func(n uint64, interval time.Duration) courseStep { return setsPaceTo(BatchRefill(n, interval, 1)) }
	long, short := setsPaceTo(Policy{window: 25 * time.Second}), setsPaceTo(Policy{window: 3 * time.Second})
	windows := []courseStep{takesAll(5), takesOne(1), takesOne(5), {"half of what is owed", by((*model).passes, 0, 0, 5)},
		{"ends", by((*model).ends, 0, 3, 1)}, setsTo(0, 8, 0), setsTo(1, 1, 0), long, short}
	// The limit and the window change together, so that no limit has many tokens in a short window.
	both := func(tier int, limit uint64, window time.Duration) courseStep {
		return courseStep{fmt.Sprintf("tier %d: %d in %v", tier, limit, window), func(m *model) {
			m.set(m.seen)
			if m.isVague(window) {
				return
			}
			policies := m.policiesNow()
			for i, p := range policies {
				policies[i] = p.paced(Policy{window: window})
			}
			policies[tier].limit = limit
			m.becomes(policies)
		}}
	}
	few, many, oneFew, oneMany := both(1, 1, 2*time.Second), both(1, 9, 24*time.Second), both(0, 1, 2*time.Second), both(0, 9, 24*time.Second)
	fourSeconds := courseStep{"four seconds", by((*model).passes, 0, 4, 3)}
	changes := func(low, high byte) []courseStep { // changes of the limit of a key and of the length of windows
		return []courseStep{takesAll(high), takesOne(low), takesOne(high), short, allOf(long, takesAll(high), short, fourSeconds), long}
	}
	toAndFro := []courseStep{takesAll(1), takesOne(2), few, many, allOf(few, fourSeconds, many)}
	return []courseKind{
		{"tiers", 0, courseSteps(1, 2, setsTo(1, 1000, fast), setsTo(1, 10, slow), setsTo(2, 3, fast), setsTo(0, 1000, slow), reserves(1)), 4, false},
		{"tiers, to and fro", 0, []courseStep{takesAll(1), takesOne(2), setsTo(1, 1000, time.Second), setsTo(1, 10, time.Second), setsTo(1, 10, slow),
			setsTo(2, 1000, time.Second), second}, 5, false},
		{"a tier and a quota", 0, courseSteps(1, 7, setsTo(1, 1000, fast), setsTo(1, 10, slow), setsTo(0, 3, fast), receipt(7), reserves(7)), 4, false},
		{"waits", 0, []courseStep{takesAll(1), reserves(1), reserves(2), ahead(1), setsTo(1, 1000, fast), setsTo(1, 3, slow), setsTo(2, 100, slow),
			second, {"ends", by((*model).ends, 0, 0, 1)}}, 4, false},
		{"quotas alone", 2, courseSteps(1, 7, setsTo(1, 1000, fast), setsTo(1, 10, slow), takesAll(10), reserves(7)), 4, false},
		{"one rate", 3, courseSteps(0, 3, setsTo(0, 1000, 0), setsTo(0, 3, 0), reserves(0), rate(fast), rate(slow)), 4, false},
		{"one rate, waits", 3, []courseStep{takesAll(0), takesAll(3), reserves(0), ahead(0), ahead(3), setsTo(0, 100, 0), rate(fast), rate(slow),
			setsPaceTo(modelRates[3]), second, holds(0)}, 4, false},
		{"batches", 4, courseSteps(0, 1, setsTo(0, 1000, 0), setsTo(1, 10, 0), reserves(0), batch(1, slow), batch(40, fast)), 4, false},
		{"batches, waits", 4, []courseStep{takesAll(0), takesAll(2), takesAll(7), reserves(0), reserves(1), setsTo(0, 3, 0), batch(1, slow), batch(40, fast),
			second, holds(1)}, 4, false},
		{"batches, a high tier", 10, []courseStep{takesAll(2), takesOne(6), reserves(0), reserves(1), setsTo(1, 3, 0), batch(1, slow), batch(40, fast),
			second}, 4, false},
		{"fixed window", 5, append(windows[:len(windows):len(windows)], holds(1)), 4, false},
		{"aligned window", 6, windows, 4, false},
		{"sliding window", 7, windows, 4, false},
		{"sliding log", 8, append(windows[:len(windows):len(windows)], receipt(1)), 4, false},
		{"fixed window, to and fro", 5, toAndFro, 5, false},
		{"aligned window, to and fro", 6, toAndFro, 5, false},
		{"sliding window, to and fro", 7, toAndFro, 5, false},
		{"fixed window, a key changes its quota", 5, changes(7, 5), 4, false},
		{"aligned window, a key changes its quota", 6, changes(7, 5), 4, false},
		{"sliding window, a key changes its quota", 7, changes(7, 5), 4, false},
		{"sliding log, a key changes its quota", 8, changes(7, 5), 4, false},
		{"fixed window, a key changes its tier", 12, changes(2, 1), 4, false},
		{"sliding window, a key changes its tier", 13, changes(2, 1), 4, false},
		{"fixed window, to and fro, one limit", 14, []courseStep{takesAll(0), takesOne(0), oneFew, oneMany, allOf(oneFew, fourSeconds, oneMany)}, 5, false},
		{"sliding window, to and fro, one limit", 15, []courseStep{takesAll(0), takesOne(0), oneFew, oneMany, allOf(oneFew, fourSeconds, oneMany)}, 5, false},
		{"a full table of tiers", 0, append(others(2), takesOne(1), takesAll(1), setsTo(1, 10, slow), setsTo(0, 3, slow), second, courseStep{"a sweep", (*model).sweeps},
			courseStep{"the others", (*model).refills}), 4, true},
		{"a full table of one rate", 3, append(others(0), takesOne(3), takesAll(0), rate(slow), second, courseStep{"the others", (*model).refills}), 4, true},
		{"a full table of windows", 5, append(others(1), takesOne(0), takesAll(2), short, second, courseStep{"the others", (*model).refills}), 4, true},
	}
}

// TestEveryCourseOfChanges (I1) tries every sequence of steps up to a maximum length.
func TestEveryCourseOfChanges(t *testing.T) {
	testrace.OneGoroutine(t)
	for _, c := range courseKinds() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			walksCourses(t, c, func() []Option { return nil })
		})
	}
}

func walksCourses(t *testing.T, c courseKind, more func() []Option) {
	met, made := map[uint64]bool{}, 0
	ends := [][]byte{nil}
	for range c.length {
		var next [][]byte
		for _, course := range ends {
			for i := range c.steps {
				longer := append(slices.Clip(course), byte(i))
				made++
				if state := c.walks(t, longer, more()); !met[state] {
					met[state] = true
					next = append(next, longer)
				}
			}
		}
		ends = next
	}
	t.Logf("%d courses, %d states", made, len(met))
}

func (c courseKind) walks(t *testing.T, course []byte, more []Option) uint64 {
	isFull := byte(0)
	if c.full {
		isFull = 3
	}
	m := newModel(t, []byte{c.kind, 0, 0, isFull}, more...)
	defer m.limiter.Close()
	var names []string
	for _, i := range course {
		names = append(names, c.steps[i].name)
		m.call = strings.Join(names, ", ")
		m.verb = "take"
		c.steps[i].make(m)
		m.settlesEviction()
	}
	m.requireEnd()
	return xxhash.Sum64String(m.state())
}

// state returns a text of everything on which later answers depend.
func (m *model) state() string {
	var s strings.Builder
	fmt.Fprint(&s, m.now, m.seen, m.leading, m.promised, m.prices.fastest, m.longest, m.limiter.table.Watermark())
	for _, q := range m.grants {
		fmt.Fprint(&s, q.tokens, q.token, q.ever, q.ticks, q.policy.window)
	}
	for i, k := range m.all() {
		if b, ok := k.account.(*bucket); ok {
			fmt.Fprint(&s, b.full, b.given, b.price)
		} else {
			fmt.Fprintf(&s, "%+v", k.account.(*window).windowed)
		}
		if k.last != nil {
			fmt.Fprint(&s, k.last.name)
		}
		if fmt.Fprint(&s, k.given, k.resets, k.vague); i >= len(m.keys) {
			continue // requireFits does not check what the other keys were given
		}
		for _, e := range k.story {
			fmt.Fprint(&s, e.at, e.n, e.q.tokens, e.q.token, e.charged)
		}
	}
	for _, tk := range m.open {
		fmt.Fprint(&s, slices.Index(m.keys[:], tk.modelKey), tk.of.n, tk.of.at, tk.of.full, tk.of.given, tk.under.name, m.isVoid(tk), tk.resets,
			tk.receipt != nil, tk.hold != nil, tk.ahead != nil)
	}
	return s.String()
}
