package metering

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/usage"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits"
)

// A reason is the way in which the cost of a settled hold was determined.
type reason uint8

const (
	reasonUsage reason = iota
	reasonKept
	reasonDelivered
	reasonFree
	reasonCanceled
	numReasons
)

var reasonNames = [numReasons]string{"usage", "kept", "delivered", "free", "canceled"}

// A meterHold has the tokens that a rule has taken for a request.
type meterHold struct {
	meter   *Meter
	hold    *limits.Hold
	tokens  uint64
	settled bool
	cost    uint64
}

// A Settled describes how an answer has ended. The http.ResponseWriter of the answer does not know this.
type Settled struct {
	Complete bool // the answer is complete
	Reached  bool // an upstream may have received the request
}

// Serve passes an admitted request to the function next, and then settles the tokens held for it. The request may
// continue after its client has gone, but not after the end of the context base. When next has returned or panicked,
// Serve calls the function ended, which returns how the answer ended.
func (ms *Meters) Serve(w http.ResponseWriter, r *http.Request, res *httplimit.Result, base context.Context,
	next func(http.ResponseWriter, *http.Request), ended func() Settled) {
	q := requestOf(r)
	a := &answer{ResponseWriter: w, q: q}
	for i := range res.Len() {
		c := res.Check(i)
		if m := ms.Of(c.Name()); m != nil && c.Outcome != limits.Failed {
			a.hold(m, c, r, ms.states.now())
		}
	}
	if len(a.holds) == 0 && !q.usageRequested {
		next(w, r)
		return
	}
	a.clamp(r, res)
	if maxTime := maxDrain(q.meters); maxTime > 0 {
		var end func()
		a.drain = &drain{maxTime: maxTime}
		r, end = a.drain.begin(r, base)
		defer end()
	}
	defer func() { a.end(ended()) }() // a panic is not recovered
	next(a, r)
	a.writeRest()
}

func (a *answer) hold(m *Meter, c *httplimit.Check, r *http.Request, now time.Time) {
	hold := limits.HoldFrom(r.Context(), m.Rule)
	h := &meterHold{meter: m, hold: hold, tokens: hold.Taken()}
	m.state.heldTokens.Add(int64(min(h.tokens, math.MaxInt64)))
	a.holds = append(a.holds, h)
	if warning := m.state.watch.note(watchedKey{c.Key(), c.Text()}, c.Decision, h.tokens, now); warning >= 0 {
		m.state.warned[warning].Add(1)
	}
}

// settleFinal settles each hold whose final cost the answer has already reported.
func (a *answer) settleFinal() {
	for _, r := range a.readings {
		u, final := r.answer.Final()
		if !final {
			continue
		}
		for _, h := range a.holds {
			if h.meter.fields == r.fields {
				h.settle(h.meter.cost(u, a.q), reasonUsage, a.q)
			}
		}
	}
}

// settle settles the hold. If the answer reports more in a later usage, the key is charged the difference.
func (h *meterHold) settle(cost uint64, r reason, q *Request) {
	s := h.meter.state
	if h.settled && cost <= h.cost {
		return
	}
	if r == reasonCanceled {
		_, lost := h.hold.Release()
		s.lost.Add(lost)
	} else {
		s.lost.Add(h.hold.Settle(cost))
	}
	s.settled[r].Add(cost - h.cost)
	h.cost = cost
	if h.settled {
		return
	}
	h.settled = true
	s.heldTokens.Add(-int64(min(h.tokens, math.MaxInt64)))
	s.ended[r].Add(1)
	if r == reasonUsage {
		if q.isTypical() {
			s.learned.Note(q.model(), cost)
		}
		if h.tokens > 0 { // otherwise nothing was held, because a rule in shadow mode would have refused the request
			s.ratio.observe(float64(cost) / float64(h.tokens))
		}
	}
}

// end settles the remaining holds at the end of the answer.
func (a *answer) end(outcome Settled) {
	for _, r := range a.readings {
		if outcome.Complete {
			r.answer.End()
		} else {
			r.answer.Close()
		}
	}
	a.settleFinal()
	for _, h := range a.holds {
		a.endHold(h, outcome)
	}
}

// endHold settles a hold that no usage has settled.
func (a *answer) endHold(h *meterHold, outcome Settled) {
	m := h.meter
	reported, text := uint64(0), uint64(0)
	if reader := a.reader(m.fields); reader != nil {
		reader.Scanner(func(s *usage.Scanner) {
			u, known, _ := s.Usage()
			if known {
				reported = m.cost(u, a.q)
			}
			text, outcome.Complete = s.Text(), outcome.Complete || s.Ended()
			m.state.badFields.Add(s.BadFields())
		})
		if reader.Unread() {
			m.state.unread.Add(1)
		}
	}
	if h.settled {
		return
	}
	if n, ok := a.reportedCost(m); ok {
		if reported = n; outcome.Complete {
			h.settle(n, reasonUsage, a.q)
			return
		}
	}
	switch {
	case !outcome.Reached, outcome.Complete && (a.status < 200 || a.status > 299) && a.status != http.StatusSwitchingProtocols:
		h.settle(0, reasonCanceled, a.q)
	case outcome.Complete && m.tokens.Unknown == rulefile.UnknownFree:
		h.settle(reported, reasonFree, a.q)
	case outcome.Complete && m.tokens.Unknown == rulefile.UnknownDelivered,
		!outcome.Complete && m.tokens.Abort.Kind == rulefile.AbortDelivered:
		h.settle(max(reported, m.deliveredCost(a.q, text)), reasonDelivered, a.q)
	default:
		h.settle(max(reported, h.tokens, m.deliveredCost(a.q, text)), reasonKept, a.q)
	}
}

// reportedCost returns the cost that the header or the trailer of the answer reports.
func (a *answer) reportedCost(m *Meter) (cost uint64, ok bool) {
	from, h, text := m.tokens.From, a.Header(), ""
	switch from.Kind {
	case rulefile.InTrailer:
		text = h.Get(http.TrailerPrefix + from.Name)
	case rulefile.InHeader:
	default:
		return 0, false
	}
	if text == "" {
		text = h.Get(from.Name)
	}
	if cost, ok = usage.Number(text); !ok && text != "" {
		m.state.badFields.Add(1)
	}
	return cost, ok
}
