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
	// between. For a server's log, Done is Sent plus the resolution of the log.
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
func (l Limit) Clock() func(key string, at time.Duration) time.Duration { return newClock(l).convert }

func newClock(l Limit) *clock {
	return &clock{limit: l, anchor: map[string]time.Duration{}, latest: map[string]time.Duration{}}
}

// convert returns the converted time of an event. If windows begin with a request, the event may begin a window. This
// changes the conversion, but converted times never go back.
func (c *clock) convert(key string, at time.Duration) time.Duration {
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
	return margin(r.Misfits, r.RunnerUpMisfits)
}

// margin compares the numbers of misfits of two limits. The result, from 0 to 1, grows with how far the second number
// exceeds the first.
func margin(misfits, runnerUpMisfits int) float64 {
	return 1 - float64(misfits+1)/float64(max(runnerUpMisfits, misfits)+1)
}

func marginOf(candidates []candidate) float64 {
	if len(candidates) < 2 {
		return 1
	}
	return margin(candidates[0].misfits, candidates[1].misfits)
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
	candidates := f.search(false)
	best, isUnsure := candidates[0].misfits, false
	if f.hasReturned && (best > len(f.events)/200 || marginOf(candidates) < 0.5) {
		chargedCandidates := f.search(true)
		if other := chargedCandidates[0].misfits; other < best/2 || other <= best && marginOf(chargedCandidates) >= 0.5 {
			candidates, isUnsure = chargedCandidates, best <= len(f.events)/20 && margin(other, best) < 0.8
		}
	}
	r := Result{
		Limit: candidates[0].limit, Misfits: candidates[0].misfits, Requests: len(requests), Admitted: f.admitted, Returned: f.hasReturned,
		Tolerance: f.tolerance, RefusalsUnsure: isUnsure,
	}
	if len(candidates) > 1 {
		r.RunnerUp, r.RunnerUpMisfits = candidates[1].limit, candidates[1].misfits
	} else {
		r.RunnerUpMisfits = f.delayed // no other kind makes requests wait
	}
	for _, other := range candidates[1:] {
		if f.hasReturned && other.misfits <= r.Misfits {
			r.Same = append(r.Same, other.limit.Kind)
		}
	}
	s := &searcher{fitter: f, best: &candidates[0], refusals: candidates[0].limit.Refusals}
	r.Shortest, r.Longest = s.periodBounds()
	r.Fewest, r.Most = s.capacityBounds()
	f.judge(r.Limit, func(_ bool, excess uint64) bool {
		r.Excess = max(r.Excess, excess)
		return true
	})
	if f.hasQueue && r.Limit.Kind == check.Bucket {
		f.findQueued(&r.Limit)
	}
	return r, nil
}

// A fitter has the events of a log, in the order in which they may have been decided.
type fitter struct {
	events                []event
	admitted, refused     int
	hasReturned, hasQueue bool
	delayed               int           // number of requests that were delayed
	queueInterval         time.Duration // the interval at which the delayed requests leave the queue
	minAnswerTime         time.Duration // the shortest time of an answer
	tolerance             time.Duration
	span                  time.Duration // from the first request to the last
}

type event struct {
	check.Event
	tolerance time.Duration
	delay     time.Duration // the request was decided at most this much after At, or before At if it was refused
}

// newFitter orders the requests of a log. Of concurrent requests, admitted requests come first. The reason is that an
// admission counts from its sending, and a refusal from its answer.
func newFitter(requests []Request, resolution time.Duration) *fitter {
	f := &fitter{minAnswerTime: math.MaxInt64}
	delays := make([]time.Duration, 0, len(requests))
	for _, r := range requests {
		f.minAnswerTime = min(f.minAnswerTime, r.Done-r.Sent)
	}
	if resolution > 0 {
		f.minAnswerTime = 0
	}
	for _, r := range requests {
		delay := r.Done - r.Sent - f.minAnswerTime
		if r.Allowed {
			f.admitted++
		}
		if !r.Allowed || delay < 20*time.Millisecond {
			delays = append(delays, delay)
		}
	}
	slices.Sort(delays)
	f.findQueue(requests, resolution, delays)
	if len(delays) > 0 {
		f.tolerance = 2*time.Millisecond + delays[len(delays)*9/10] + resolution
	}
	f.events = make([]event, len(requests))
	for i, r := range requests {
		delay := r.Done - r.Sent - f.minAnswerTime
		e := event{check.Event{At: r.Sent + f.minAnswerTime/2, Key: r.Key, N: 1, Allowed: r.Allowed}, f.tolerance + delay, delay}
		if r.Allowed {
			if f.hasQueue {
				e.tolerance, e.delay, e.Wait = f.tolerance, 0, delay
			}
		} else {
			f.refused++
			e.At = r.Done - f.minAnswerTime/2
		}
		f.events[i] = e
	}
	slices.SortStableFunc(f.events, func(a, b event) int {
		if a.At == b.At && a.Allowed != b.Allowed && resolution == 0 { // both were in progress
			return map[bool]int{true: -1, false: 1}[a.Allowed]
		}
		return cmp.Compare(a.At, b.At)
	})
	f.scan()
	return f
}

// findQueue finds out whether admitted requests wait for their turn. If so, they take much longer than refusals. It
// also finds the interval at which waiting requests leave the queue. The parameter delays has the times by which
// answers took longer than the shortest time of an answer.
func (f *fitter) findQueue(requests []Request, resolution time.Duration, delays []time.Duration) {
	if resolution > 0 || len(delays) == 0 {
		return
	}
	minDelay := max(100*time.Millisecond, 2*f.minAnswerTime, 4*delays[len(delays)*9/10])
	var leaveTimes []time.Duration
	for _, r := range requests {
		if r.Allowed && r.Done-r.Sent-f.minAnswerTime > minDelay {
			leaveTimes = append(leaveTimes, r.Done)
		}
	}
	f.delayed = len(leaveTimes)
	if f.hasQueue = f.delayed > 3 && f.delayed > f.admitted/4; !f.hasQueue {
		return
	}
	slices.Sort(leaveTimes)
	intervals := make([]time.Duration, 0, len(leaveTimes))
	for i := range leaveTimes[1:] {
		intervals = append(intervals, leaveTimes[i+1]-leaveTimes[i])
	}
	slices.Sort(intervals)
	f.queueInterval = max(intervals[len(intervals)/2], time.Millisecond)
}

// scan finds the length of the log, and whether tokens came back.
func (f *fitter) scan() {
	refused := map[string]bool{}
	for _, e := range f.events {
		if !e.Allowed {
			refused[e.Key] = true
		} else if refused[e.Key] {
			f.hasReturned = true
		}
	}
	if n := len(f.events); n > 0 {
		f.span = max(f.events[n-1].At-f.events[0].At, time.Millisecond)
	}
}

// judge replays the log under a limit, and calls visit for each decision, until visit returns false. The argument
// explained says whether the limit explains the decision. The argument excess is the number of tokens by which an
// admission exceeds the limit.
//
// Each request was decided at an unknown time between its sending and its answer. A limit explains a decision if the
// decision is right for some choice of these times. judge tries only two choices: every admission as early as possible,
// or as late as possible.
func (f *fitter) judge(l Limit, visit func(explained bool, excess uint64) bool) {
	early, late := newReplay(l, false), newReplay(l, true)
	if early == nil || late == nil {
		return
	}
	// The choice of times matters only if some admitted requests were delayed.
	hasDelays := slices.ContainsFunc(f.events, func(e event) bool { return e.Allowed && e.delay > f.tolerance })
	for _, e := range f.events {
		explained, excess := early.next(e)
		if hasDelays {
			lateExplained, lateExcess := late.next(e)
			explained, excess = explained || lateExplained, min(excess, lateExcess)
		}
		if !visit(explained, excess) {
			return
		}
	}
}

// misfits returns how many decisions a limit does not explain. It stops counting when the number exceeds maxMisfits.
func (f *fitter) misfits(l Limit, maxMisfits int) (n int) {
	f.judge(l, func(explained bool, _ uint64) bool {
		if !explained {
			n++
		}
		return n <= maxMisfits
	})
	return n
}

// maxUsed returns the largest number of tokens that a key has used of its burst or window, as the limit counts. The
// result typical is the most frequent number of used tokens at a refusal. It is lower than largest if too many requests
// were admitted at one time.
func (f *fitter) maxUsed(l Limit) (largest, typical uint64) {
	if l.Burst = 1; l.Kind != check.Bucket && l.Kind != check.BatchRefill {
		l.Tokens = 1
	}
	c, err := check.New(l.Limit, l.Kind)
	if err != nil {
		return 1, 1
	}
	largest = 1
	clock, used, times := newClock(l), map[string]uint64{}, map[uint64]int{}
	for _, e := range f.events {
		if e.At = clock.convert(e.Key, e.At); e.Allowed {
			used[e.Key] = c.Add(e.Event).Excess + 1
			largest = max(largest, used[e.Key])
		} else if n := used[e.Key]; n > 0 { // the first refusal after admissions
			times[n]++
			used[e.Key] = 0
		}
	}
	for n, count := range times {
		if count > times[typical] || count == times[typical] && n > typical {
			typical = n
		}
	}
	return largest, max(typical, 1)
}

// initialAdmissions returns how many requests of the first key were admitted before its first refusal.
func (f *fitter) initialAdmissions() (n uint64) {
	for _, e := range f.events {
		if e.Key == f.events[0].Key && !e.Allowed {
			break
		} else if e.Key == f.events[0].Key {
			n++
		}
	}
	return max(n, 1)
}
