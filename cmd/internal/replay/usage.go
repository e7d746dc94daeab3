package replay

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/weir-go/weir/cmd/internal/trace"
	"github.com/weir-go/weir/cmd/internal/usage"
	"github.com/weir-go/weir/cmd/internal/usagelog"
	"github.com/weir-go/weir/engine"
)

// An Estimate says how many tokens a request holds until its cost is known.
type Estimate struct {
	Learned bool   // the usual cost of requests for its model, as with "estimate: learned" in a rule
	Tokens  uint64 // number of tokens, unless Learned is set; for 0, one token is held, and the rest is charged later
}

const maxTokens = 1_000_000_000

// ParseEstimate parses an estimate: "learned", "none" or a number.
func ParseEstimate(text string) (e Estimate, err error) {
	switch text {
	case "learned":
		return Estimate{Learned: true}, nil
	case "none":
		return Estimate{}, nil
	case "worst":
		return e, errors.New("worst: it needs a request's body, which a usage log does not have: want learned, none or a number of tokens")
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < 1 || n > maxTokens {
		return e, fmt.Errorf("%q: want learned, none or a number of tokens from 1 to %d", text, maxTokens)
	}
	return Estimate{Tokens: n}, nil
}

// String returns the text that ParseEstimate parses.
func (e Estimate) String() string {
	switch {
	case e.Learned:
		return "learned"
	case e.Tokens == 0:
		return "none"
	}
	return strconv.FormatUint(e.Tokens, 10)
}

// UsageReport has the results of a limit of tokens for the requests of a usage log. There is one result for each
// estimate.
type UsageReport struct {
	Log
	Policy    engine.Policy
	Field     string // the field that identifies keys; "" if there is none
	Tokens    uint64 // cost of all requests
	Summed    uint64 // requests for which the log has only sums
	Untimed   uint64 // requests without a duration
	Estimates []Estimated
	Trace     *trace.Trace // the requests and their costs; nil unless keep was set
	Names     []string     // names of the keys

	requests []usagelog.Request
	numbers  map[string]uint32 // numbers of the keys, by name
}

// Estimated is the result for one estimate.
type Estimated struct {
	Estimate Estimate
	Outcome
	Admitted, Rejected uint64 // the costs of allowed and of refused requests, in tokens
	Beyond             uint64 // tokens that allowed requests cost beyond what they held
	Unused             uint64 // tokens that allowed requests held and did not cost
	Lost               uint64 // the part of Beyond that was not charged, because the key owed its maximum
	Series             Series
}

// Close deletes the stored requests.
func (r *UsageReport) Close() error {
	if r.Trace == nil {
		return nil
	}
	return r.Trace.Close()
}

// NewUsage returns the report of a log. It has no results until Try is called. If keep is true, the requests are stored
// for a suggestion.
func NewUsage(log *usagelog.Log, keep bool) (*UsageReport, error) {
	r := &UsageReport{Field: log.Key, Summed: log.Summed, Untimed: log.Untimed, numbers: map[string]uint32{}, requests: log.Requests,
		Log: Log{
			Format: log.Format, Requests: uint64(len(log.Requests)), Skipped: log.Skipped, Reasons: log.Reasons,
			Late: log.Late, MostLate: log.MostLate, First: log.Requests[0].At, Last: log.Requests[len(log.Requests)-1].At,
		}}
	if keep {
		r.Trace = &trace.Trace{}
	}
	for i := range log.Requests {
		q := &log.Requests[i]
		r.Tokens += q.Cost
		number, found := r.numbers[q.Key]
		if !found {
			number = uint32(len(r.numbers))
			r.numbers[q.Key] = number
			r.Names = append(r.Names, printable(q.Key))
		}
		if keep {
			if err := r.Trace.Add(trace.Request{UnixNano: q.At.UnixNano(), Cost: q.Cost, Key: number}); err != nil {
				return nil, errors.Join(err, r.Close())
			}
		}
	}
	r.Keys = uint64(len(r.numbers))
	return r, nil
}

// Try checks the requests against a policy with each of the estimates. If there are none, it tries three: "learned",
// the mean cost of a request, and "none". A request is settled when it ends. If the log does not have its duration, it
// is settled at once.
func (r *UsageReport) Try(policy engine.Policy, estimates []Estimate) error {
	if len(estimates) == 0 {
		mean := min(max(r.Tokens/r.Requests, 1), maxTokens)
		estimates = []Estimate{{Learned: true}, {Tokens: mean}, {}}
	}
	r.Policy, r.Estimates = policy, nil
	for _, e := range estimates {
		result, err := r.runEstimate(policy, e)
		if err != nil {
			return err
		}
		r.Estimates = append(r.Estimates, *result)
	}
	return nil
}

// An estimator decides the requests of a log with one estimate.
type estimator struct {
	Estimated
	now     time.Time
	limiter *engine.Limiter
	learned usage.Learned
	holds   openHolds
}

// runEstimate decides all requests with an estimate.
func (r *UsageReport) runEstimate(policy engine.Policy, estimate Estimate) (*Estimated, error) {
	e := &estimator{Estimated: Estimated{Estimate: estimate, Outcome: Outcome{Policy: policy}}, now: r.First}
	var err error
	e.limiter, err = engine.New(policy, engine.MaxKeys(2*len(r.Names)+64), // so that no key is evicted
		engine.ClockFunc(func() time.Time { return e.now }))
	if err != nil {
		return nil, err
	}
	defer e.limiter.Close()
	keys := make([]Key, len(r.Names))
	for i, name := range r.Names {
		keys[i].Name = name
	}
	for i := range r.requests {
		q := &r.requests[i]
		e.settle(q.At)
		e.now = q.At
		number := r.numbers[q.Key]
		keys[number].Requests++
		if !e.request(q, e.limiter.KeyUint64(uint64(number))) {
			keys[number].Refused++
		}
	}
	e.settle(time.Unix(0, math.MaxInt64))
	for _, k := range keys {
		if k.Refused > 0 {
			e.RefusedKeys = append(e.RefusedKeys, k)
		}
	}
	sortKeys(e.RefusedKeys)
	e.AsLogged = e.Refused
	return &e.Estimated, nil
}

func (r *estimator) request(q *usagelog.Request, key engine.Key) bool {
	tokens := max(r.Estimate.Tokens, 1)
	if r.Estimate.Learned {
		var ok bool
		if tokens, ok = r.learned.Usual(q.Model); !ok {
			tokens = q.Cost // because the largest possible cost is unknown
		}
	}
	hold := &openHold{at: q.At.Add(q.Took), cost: q.Cost, model: q.Model}
	var d engine.Decision
	d, hold.receipt = r.limiter.Hold(key, tokens)
	r.Series.add(q.At, !d.Allowed)
	if !d.Allowed {
		r.Refused++
		r.Rejected += q.Cost
		return false
	}
	r.Allowed++
	r.Admitted += q.Cost
	taken := hold.receipt.Taken()
	r.Beyond += q.Cost - min(q.Cost, taken)
	r.Unused += taken - min(q.Cost, taken)
	heap.Push(&r.holds, hold)
	return true
}

// settle settles the holds of requests that have ended by the time until.
func (r *estimator) settle(until time.Time) {
	for len(r.holds) > 0 && !r.holds[0].at.After(until) {
		hold := heap.Pop(&r.holds).(*openHold)
		r.now = hold.at
		r.Lost += hold.receipt.Settle(hold.cost)
		r.learned.Note(hold.model, hold.cost)
	}
}

type openHold struct {
	receipt engine.Receipt
	at      time.Time // when the request ends
	cost    uint64
	model   string
}

// openHolds is a heap with the hold that ends first on top.
type openHolds []*openHold

func (o openHolds) Len() int           { return len(o) }
func (o openHolds) Less(i, j int) bool { return o[i].at.Before(o[j].at) }
func (o openHolds) Swap(i, j int)      { o[i], o[j] = o[j], o[i] }
func (o *openHolds) Push(x any)        { *o = append(*o, x.(*openHold)) }

func (o *openHolds) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}
