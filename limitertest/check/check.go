package check

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// An Event is a request and the decision about it.
type Event struct {
	// At is the time of the request. It counts from an instant at which aligned windows begin: for wall clocks, 1970,
	// UTC.
	At      time.Duration
	Key     string
	N       int64 // the tokens of the request; a request for 0 or fewer is neither charged nor judged
	Allowed bool
	// Wait is how long the request was held after it was admitted, for a LeakyQueue.
	Wait time.Duration
}

// A Verdict says what is wrong with one decision.
type Verdict struct {
	// Excess is how many tokens were admitted beyond the limit, including this request, rounded up.
	Excess uint64
	// Early is how much sooner the request was admitted than the limit allows. For a request above the limit, Early is
	// [Never].
	Early time.Duration
	// Late is how long there had been room for a request that was refused, and for everything admitted meanwhile. It
	// includes the nanosecond of the refusal. If there was no room, or the request was admitted, Late is 0. If all
	// tokens came back later by Late, the refusal would be right.
	Late time.Duration
}

// A Report says what is wrong with a log.
type Report struct {
	Events, Admitted, Refused int
	// Excess is the largest number of tokens that were admitted beyond the limit, rounded up. Worst is the window of
	// this excess.
	Excess uint64
	Worst  Window
	// Early is the largest [Verdict.Early] of all events.
	Early time.Duration
	// RefusedEarly is how many requests were refused although there was room. Late is the largest [Verdict.Late] of
	// these refusals.
	RefusedEarly int
	Late         time.Duration
	// Counterexample is a shortest part of the log that proves the excess. If there is no excess, it proves a refusal
	// that was too early. It is empty if nothing is wrong, and always empty in the report of [Checker.Report].
	Counterexample []Event
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return r.Excess == 0 && r.RefusedEarly == 0 }

// String returns the report as text.
func (r Report) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d requests, %d admitted, %d refused", r.Events, r.Admitted, r.Refused)
	if r.Excess > 0 {
		fmt.Fprintf(&text, "; %d too many: %d admitted within %v, by up to %v too early", r.Excess, r.Worst.Tokens,
			duration(nanosBetween(r.Worst.From, r.Worst.To)), r.Early)
	}
	if r.RefusedEarly > 0 {
		fmt.Fprintf(&text, "; %d refused too early, by up to %v", r.RefusedEarly, r.Late)
	}
	if r.OK() {
		text.WriteString("; nothing wrong")
	}
	for _, e := range r.Counterexample {
		e.At -= r.Counterexample[0].At
		fmt.Fprintf(&text, "\n\t+%v", e)
	}
	return text.String()
}

// String returns the event as text. In a report's text, times count from the first request of the counterexample.
func (e Event) String() string {
	outcome := "refused"
	if e.Allowed {
		outcome = "admitted"
	}
	if e.Wait != 0 {
		outcome += fmt.Sprintf(" after %v", e.Wait)
	}
	return fmt.Sprintf("%v %q %d: %s", e.At, e.Key, e.N, outcome)
}

// A Checker judges a log event by event. Make one with [New]; the zero value is not usable. It is not safe for
// concurrent use.
type Checker struct {
	// EarlyBy and LateBy are tolerances of reports. A report omits an admission whose [Verdict.Early] is at most
	// EarlyBy, and a refusal whose [Verdict.Late] is at most LateBy. Set both before the first event; the default is 0.
	// Verdicts ignore them.
	EarlyBy, LateBy time.Duration

	limit     Limit
	promise   Promise
	keys      map[string]*key
	latestKey *key // the key of the latest event
	report    Report

	worst, refusal struct { // the events with the worst verdicts of the report
		key    string
		number int // the number of the event
		from   time.Duration
	}
}

// A key stores what a Checker knows about one key.
type key struct {
	model
	name    string
	outflow *bucket // for a LeakyQueue: the tokens that have left the queue
	at      time.Duration
}

// New returns a Checker that has no events yet. If the limit is not valid, it returns an error.
func New(l Limit, p Promise) (*Checker, error) {
	if err := l.Check(p); err != nil {
		return nil, err
	}
	return &Checker{limit: l, promise: p, keys: map[string]*key{}}, nil
}

// key returns what is known about a key, and the time at which an event counts. An event before the latest time of the
// key counts at the latest time.
func (c *Checker) key(name string, at time.Duration) (*key, time.Duration) {
	k := c.latestKey
	if k == nil || k.name != name {
		k = c.keys[name]
	}
	if k == nil {
		k = &key{model: newModel(c.limit, c.promise), name: name, at: at}
		if c.promise == LeakyQueue {
			k.outflow = &bucket{unitsPerNano: c.limit.Tokens, unitsPerToken: uint64(c.limit.Per), burst: product(1, uint64(c.limit.Per))}
		}
		c.keys[name] = k
	}
	if c.latestKey != k {
		c.latestKey = k
	}
	k.at = max(k.at, at)
	return k, k.at
}

// Until returns the wait after which a request of n tokens is certain to be allowed, if the key gets no other request
// meanwhile. The wait is counted from the given instant. It is Never if the limit never allows the request.
func (c *Checker) Until(name string, at time.Duration, n uint64) time.Duration {
	k, from := c.key(name, at)
	if n == 0 {
		return 0
	}
	return addTime(from-at, k.wait(from, n, true))
}

// Add judges the next event. If an earlier event of the key has a later time, the event counts at that time.
func (c *Checker) Add(e Event) (v Verdict) {
	k, at := c.key(e.Key, e.At)
	number := c.report.Events
	c.report.Events++
	if !e.Allowed {
		c.report.Refused++
		return c.judgeRefusal(k, e, at, number)
	}
	c.report.Admitted++
	if e.N <= 0 {
		return v
	}
	n := uint64(e.N)
	v.Early = k.wait(at, n, false)
	var worst Window
	v.Excess, worst = k.charge(at, n)
	if k.outflow != nil {
		leaveAt := max(addTime(at, max(e.Wait, 0)), k.outflow.at)
		v.Early = max(v.Early, k.outflow.wait(leaveAt, 1, false)) // the tokens of a request leave one by one
		if excess, window := k.outflow.charge(leaveAt, n); excess > v.Excess+n-1 {
			v.Excess, worst = excess-(n-1), window
		}
	}
	if v.Early > c.EarlyBy {
		c.report.Early = max(c.report.Early, v.Early)
		if v.Excess > c.report.Excess {
			c.report.Excess, c.report.Worst = v.Excess, worst
			c.worst.key, c.worst.number, c.worst.from = e.Key, number, worst.From
		}
	}
	return v
}

func (c *Checker) judgeRefusal(k *key, e Event, at time.Duration, number int) (v Verdict) {
	if e.N <= 0 || k.wait(at, uint64(e.N), true) > 0 {
		return v
	}
	countsFrom, roomSince := k.since(at, uint64(e.N))
	v.Late = duration(addSaturated(nanosBetween(roomSince, at), 1))
	if v.Late > c.LateBy {
		c.report.RefusedEarly++
		if v.Late > c.report.Late {
			c.report.Late = v.Late
			c.refusal.key, c.refusal.number, c.refusal.from = e.Key, number, countsFrom
		}
	}
	return v
}

// Report returns what is wrong with the events that were added.
func (c *Checker) Report() Report { return c.report }

// Log judges a log in any order. It first sorts the events by the field At. Events with the same time keep their order.
func Log(l Limit, p Promise, log []Event) (Report, error) {
	c, err := New(l, p)
	if err != nil {
		return Report{}, err
	}
	return c.Log(log), nil
}

// Log judges a log like the function Log. The Checker must have no events yet. The report has a counterexample.
func (c *Checker) Log(log []Event) Report {
	log = slices.Clone(log)
	slices.SortStableFunc(log, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	for _, e := range log {
		c.Add(e)
	}
	r := c.report
	switch {
	case r.Excess > 0:
		r.Counterexample = c.excess(log)
	case r.RefusedEarly > 0:
		r.Counterexample = c.refusedEarly(log)
	}
	return r
}

// excess returns admitted requests that together exceed the limit, but no longer do so if any one of them is removed.
// (The first request of a FixedWindow is an exception.) If there are more than a thousand requests, excess returns a
// contiguous part of the log instead.
func (c *Checker) excess(log []Event) []Event {
	part := []Event{}
	for _, e := range log[:c.worst.number+1] {
		if e.Key == c.worst.key && e.Allowed && e.N > 0 && addTime(e.At, max(e.Wait, 0)) >= c.worst.from {
			part = append(part, e)
		}
	}
	kept := 0
	if c.promise == FixedWindow { // the first request stays, because the window begins with it
		kept = 1
	}
	first, part := part[:kept:kept], part[kept:]
	exceeds := func(events []Event) bool {
		checker := Checker{EarlyBy: c.EarlyBy, limit: c.limit, promise: c.promise, keys: map[string]*key{}}
		for _, e := range append(first, events...) {
			checker.Add(e)
		}
		return checker.report.Excess > 0
	}
	// If a part of the log exceeds the limit, so does each longer part that contains it. So a binary search finds both
	// ends.
	part = part[:sort.Search(len(part), func(n int) bool { return exceeds(part[:n]) })]
	part = part[max(sort.Search(len(part), func(n int) bool { return !exceeds(part[n:]) }), 1)-1:]
	if len(part) <= 1000 {
		part = Shrink(part, len(part)*len(part), exceeds)
	}
	return append(first, part...)
}

// refusedEarly returns the worst refusal, after all admitted requests that could still count at that time.
func (c *Checker) refusedEarly(log []Event) (part []Event) {
	last := log[c.refusal.number]
	for _, e := range log[:c.refusal.number] {
		if e.Key == last.Key && e.Allowed && e.N > 0 && e.At >= c.refusal.from {
			part = append(part, e)
		}
	}
	return append(part, last)
}
