package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/limitertest/check"
)

// A Request is one request of a log, and its decision.
type Request struct {
	// Sent is when the request was sent, and Done when its answer had arrived, both since 1970. The decision was in
	// between. In a server's log, the two times are equal.
	Sent, Done time.Duration
	Key        string // the key, which has its own bucket; "" if all requests share one
	Allowed    bool
}

// A Limit is a limit that may have made the decisions of a log.
type Limit struct {
	Kind check.Promise
	check.Limit
	// Phase is how long after a multiple of the period each window begins. The value Anchored means that the first
	// window begins with a request. Further windows then follow without a gap until one has no request. The next
	// request begins a new window.
	Phase time.Duration
	// Refusals says that refused requests are charged, too.
	Refusals bool
	// Queued is how many requests of a burst may be delayed, because they wait for their turn. 0 means that none waits.
	Queued uint64
}

// Anchored is the Phase of a limit whose windows begin with a request.
const Anchored time.Duration = -1

// A clock converts the times of events, in order, to times of the same windows without a phase.
type clock struct {
	limit  Limit
	anchor map[string]time.Duration
	latest map[string]time.Duration
}

// Clock returns a function that converts the times of requests to the times that determine the limit's windows. It must
// be called for the requests in order.
func (l Limit) Clock() func(key string, at time.Duration) time.Duration { return newClock(l).at }

func newClock(l Limit) *clock {
	return &clock{limit: l, anchor: map[string]time.Duration{}, latest: map[string]time.Duration{}}
}

// The method at returns the converted time of an event. If windows begin with a request, the event may begin a window.
// This changes the conversion, but converted times never go back.
func (c *clock) at(key string, at time.Duration) time.Duration {
	if c.limit.Phase != Anchored {
		return at - c.limit.Phase
	}
	latest, ok := c.latest[key]
	if start := latest - (latest-c.anchor[key])%c.limit.Per; !ok || at-start >= 2*c.limit.Per {
		c.anchor[key] = at % c.limit.Per
	}
	c.latest[key] = max(latest, at)
	return at - c.anchor[key]
}

// A Result is the limit that explains a log.
type Result struct {
	Limit    Limit
	Requests int
	Admitted int
	// Misfits is the number of decisions that the limit does not explain.
	Misfits int
	// RunnerUp is the best limit of another kind. RunnerUpMisfits is the number of decisions that it does not explain.
	RunnerUp        Limit
	RunnerUpMisfits int
	// Same has the other kinds that explain the log as well as Limit does. The requests of the log cannot distinguish
	// these kinds.
	Same []check.Promise
	// Returned says that a request was admitted after a refusal. If none was, the kind and the period are unknown.
	Returned bool
	// Shortest and Longest are the bounds of the periods that explain the log equally well.
	Shortest, Longest time.Duration
	// Fewest and Most bound the capacity, which is the tokens of a full key. Limits with a capacity between the two
	// explain the log as well as Limit does.
	Fewest, Most uint64
	// RefusalsUnsure says that the log does not show whether refused requests are charged: a limit without such charges
	// explains it nearly as well.
	RefusalsUnsure bool
	// Excess is the least number of requests that were admitted beyond the limit at the worst instant.
	Excess uint64
	// Tolerance is how much the times of the log may be wrong.
	Tolerance time.Duration
}

// Confidence returns how certain the kind is, from 0 to 1. It grows with the misfits of the runner-up.
func (r Result) Confidence() float64 {
	if !r.Returned || len(r.Same) > 0 {
		return 0
	}
	return moreBy(r.Misfits, r.RunnerUpMisfits)
}

// moreBy compares the numbers of misfits of two limits. The result, from 0 to 1, grows with how far the second number
// exceeds the first.
func moreBy(misfits, others int) float64 {
	return 1 - float64(misfits+1)/float64(max(others, misfits)+1)
}

func sure(all []candidate) float64 {
	if len(all) < 2 {
		return 1
	}
	return moreBy(all[0].misfits, all[1].misfits)
}

// Log fits every kind of limit to a log. A server's log rounds times down to a multiple of resolution. For times that a
// client measured, resolution is 0.
func Log(requests []Request, resolution time.Duration) (Result, error) {
	f := newFitter(requests, resolution)
	if f.refused == 0 {
		return Result{Requests: len(requests), Admitted: f.admitted}, fmt.Errorf("no request was refused: %d were admitted", f.admitted)
	}
	if f.admitted == 0 {
		return Result{Requests: len(requests)}, fmt.Errorf("no request was admitted: %d were refused", f.refused)
	}
	all := f.search(false)
	best, unsure := all[0].misfits, false
	if f.returned && (best > len(f.events)/200 || sure(all) < 0.5) {
		charged := f.search(true)
		if other := charged[0].misfits; other < best/2 || other <= best && sure(charged) >= 0.5 {
			all, unsure = charged, best <= len(f.events)/20 && moreBy(other, best) < 0.8
		}
	}
	r := Result{
		Limit: all[0].limit, Misfits: all[0].misfits, Requests: len(requests), Admitted: f.admitted, Returned: f.returned,
		Tolerance: f.tolerance, RefusalsUnsure: unsure,
	}
	if len(all) > 1 {
		r.RunnerUp, r.RunnerUpMisfits = all[1].limit, all[1].misfits
	} else {
		r.RunnerUpMisfits = f.waits // no other kind makes requests wait
	}
	for _, other := range all[1:] {
		if f.returned && other.misfits <= r.Misfits {
			r.Same = append(r.Same, other.limit.Kind)
		}
	}
	of := &finder{fitter: f, best: &all[0], refusals: all[0].limit.Refusals}
	r.Shortest, r.Longest = of.bounds()
	r.Fewest, r.Most = of.numbers()
	f.judge(r.Limit, func(_ bool, excess uint64) bool {
		r.Excess = max(r.Excess, excess)
		return true
	})
	if f.queued && r.Limit.Kind == check.Bucket {
		f.queue(&r.Limit)
	}
	return r, nil
}

// A fitter has the events of a log, in the order in which they may have been decided.
type fitter struct {
	events            []event
	admitted, refused int
	returned, queued  bool
	waits             int           // number of requests that were delayed
	apart             time.Duration // the interval at which the delayed requests leave the queue
	base              time.Duration // the shortest time of an answer
	tolerance         time.Duration
	span              time.Duration // from the first request to the last
}

type event struct {
	check.Event
	tolerance time.Duration
	held      time.Duration // the request was decided at most this much after At, or before At if it was refused
}

// newFitter orders the requests of a log. Of concurrent requests, admitted requests come first. The reason is that an
// admission counts from its sending, and a refusal from its answer.
func newFitter(requests []Request, resolution time.Duration) *fitter {
	f := &fitter{base: math.MaxInt64}
	excess := make([]time.Duration, 0, len(requests))
	for _, r := range requests {
		f.base = min(f.base, r.Done-r.Sent)
	}
	if resolution > 0 {
		f.base = 0
	}
	for _, r := range requests {
		over := r.Done - r.Sent - f.base
		if r.Allowed {
			f.admitted++
		}
		if !r.Allowed || over < 20*time.Millisecond {
			excess = append(excess, over)
		}
	}
	slices.Sort(excess)
	f.waiting(requests, resolution, excess)
	if len(excess) > 0 {
		f.tolerance = 2*time.Millisecond + excess[len(excess)*9/10] + resolution
	}
	f.events = make([]event, len(requests))
	for i, r := range requests {
		over := r.Done - r.Sent - f.base
		e := event{check.Event{At: r.Sent + f.base/2, Key: r.Key, N: 1, Allowed: r.Allowed}, f.tolerance + over, over}
		if r.Allowed {
			if f.queued {
				e.tolerance, e.held, e.Wait = f.tolerance, 0, over
			}
		} else {
			f.refused++
			e.At = r.Done - f.base/2
		}
		f.events[i] = e
	}
	slices.SortStableFunc(f.events, func(a, b event) int {
		if a.At == b.At && a.Allowed != b.Allowed && resolution == 0 { // both were in progress
			return map[bool]int{true: -1, false: 1}[a.Allowed]
		}
		return cmp.Compare(a.At, b.At)
	})
	f.look()
	return f
}

// waiting finds out whether admitted requests wait for their turn. If so, they take much longer than refusals. It also
// finds the interval at which waiting requests leave the queue.
func (f *fitter) waiting(requests []Request, resolution time.Duration, excess []time.Duration) {
	if resolution > 0 || len(excess) == 0 {
		return
	}
	least := max(100*time.Millisecond, 2*f.base, 4*excess[len(excess)*9/10])
	var left []time.Duration
	for _, r := range requests {
		if r.Allowed && r.Done-r.Sent-f.base > least {
			left = append(left, r.Done)
		}
	}
	f.waits = len(left)
	if f.queued = f.waits > 3 && f.waits > f.admitted/4; !f.queued {
		return
	}
	slices.Sort(left)
	apart := make([]time.Duration, 0, len(left))
	for i := range left[1:] {
		apart = append(apart, left[i+1]-left[i])
	}
	slices.Sort(apart)
	f.apart = max(apart[len(apart)/2], time.Millisecond)
}

// look finds the length of the log, and whether tokens came back.
func (f *fitter) look() {
	refused := map[string]bool{}
	for _, e := range f.events {
		if !e.Allowed {
			refused[e.Key] = true
		} else if refused[e.Key] {
			f.returned = true
		}
	}
	if n := len(f.events); n > 0 {
		f.span = max(f.events[n-1].At-f.events[0].At, time.Millisecond)
	}
}

// judge replays the log under a limit, and calls a function (on) for each decision, until the function returns false.
// The argument explained says whether the limit explains the decision. The argument excess is the number of tokens by
// which an admission exceeds the limit.
//
// Each request was decided at an unknown time between its sending and its answer. A limit explains a decision if the
// decision is right for some choice of these times. judge tries only two choices: every admission as early as possible,
// or as late as possible.
func (f *fitter) judge(l Limit, on func(explained bool, excess uint64) bool) {
	early, late := newReplay(l, false), newReplay(l, true)
	if early == nil || late == nil {
		return
	}
	// The choice of times matters only if some admitted requests were delayed.
	both := slices.ContainsFunc(f.events, func(e event) bool { return e.Allowed && e.held > f.tolerance })
	for _, e := range f.events {
		explained, excess := early.next(e)
		if both {
			also, other := late.next(e)
			explained, excess = explained || also, min(excess, other)
		}
		if !on(explained, excess) {
			return
		}
	}
}

// misfits returns how many decisions a limit does not explain. It stops counting when the number exceeds most.
func (f *fitter) misfits(l Limit, most int) (n int) {
	f.judge(l, func(explained bool, _ uint64) bool {
		if !explained {
			n++
		}
		return n <= most
	})
	return n
}

// The method most returns the largest number of tokens that a key has used of its burst or window, as the limit counts.
// The result usual is the most frequent number of used tokens at a refusal. It is lower than the result most if too
// many requests were admitted at one time.
func (f *fitter) most(l Limit) (most, usual uint64) {
	if l.Burst = 1; l.Kind != check.Bucket && l.Kind != check.BatchRefill {
		l.Tokens = 1
	}
	c, err := check.New(l.Limit, l.Kind)
	if err != nil {
		return 1, 1
	}
	most = 1
	by, has, times := newClock(l), map[string]uint64{}, map[uint64]int{}
	for _, e := range f.events {
		if e.At = by.at(e.Key, e.At); e.Allowed {
			has[e.Key] = c.Add(e.Event).Excess + 1
			most = max(most, has[e.Key])
		} else if n := has[e.Key]; n > 0 { // the first refusal after admissions
			times[n]++
			has[e.Key] = 0
		}
	}
	for n, count := range times {
		if count > times[usual] || count == times[usual] && n > usual {
			usual = n
		}
	}
	return most, max(usual, 1)
}

// The method first returns how many requests of the first key were admitted before its first refusal.
func (f *fitter) first() (n uint64) {
	for _, e := range f.events {
		if e.Key == f.events[0].Key && !e.Allowed {
			break
		} else if e.Key == f.events[0].Key {
			n++
		}
	}
	return max(n, 1)
}
