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
	byUsage reason = iota
	kept
	delivered
	free
	canceled
	reasons
)

var reasonNames = [reasons]string{"usage", "kept", "delivered", "free", "canceled"}

// held has the tokens that a rule has taken for a request.
type held struct {
	meter   *Meter
	of      *limits.Hold
	tokens  uint64
	settled bool
	cost    uint64
}

// A Settled describes how an answer has ended. The http.ResponseWriter of the answer does not know this.
type Settled struct {
	Whole   bool // the answer is complete
	Reached bool // an upstream may have received the request
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
	if len(a.held) == 0 && !q.asked {
		next(w, r)
		return
	}
	a.clamp(r, res)
	if longest := drainOf(q.meters); longest > 0 {
		var end func()
		a.drain = &drain{longest: longest}
		r, end = a.drain.begin(r, base)
		defer end()
	}
	defer func() { a.end(ended()) }() // a panic is not recovered
	next(a, r)
	a.rest()
}

func (a *answer) hold(m *Meter, c *httplimit.Check, r *http.Request, now time.Time) {
	of := limits.HoldFrom(r.Context(), m.Rule)
	h := &held{meter: m, of: of, tokens: of.Taken()}
	m.state.held.Add(int64(min(h.tokens, math.MaxInt64)))
	a.held = append(a.held, h)
	if warning := m.state.watch.note(watched{c.Key(), c.Text()}, c.Decision, h.tokens, now); warning >= 0 {
		m.state.warned[warning].Add(1)
	}
}

// settleFinal settles each hold whose final cost the answer has already reported.
func (a *answer) settleFinal() {
	for _, r := range a.readings {
		u, final := r.of.Final()
		if !final {
			continue
		}
		for _, h := range a.held {
			if h.meter.fields == r.fields {
				h.settle(h.meter.cost(u, a.q), byUsage, a.q)
			}
		}
	}
}

// settle settles the hold. If the answer reports more in a later usage, the key is charged the difference.
func (h *held) settle(cost uint64, why reason, q *Request) {
	s := h.meter.state
	if h.settled && cost <= h.cost {
		return
	}
	if why == canceled {
		_, lost := h.of.Release()
		s.lost.Add(lost)
	} else {
		s.lost.Add(h.of.Settle(cost))
	}
	s.settled[why].Add(cost - h.cost)
	h.cost = cost
	if h.settled {
		return
	}
	h.settled = true
	s.held.Add(-int64(min(h.tokens, math.MaxInt64)))
	s.ended[why].Add(1)
	if why == byUsage {
		if q.isLike() {
			s.learned.Note(q.model(), cost)
		}
		if h.tokens > 0 { // otherwise nothing was held, because a rule in shadow mode would have refused the request
			s.ratio.observe(float64(cost) / float64(h.tokens))
		}
	}
}

// end settles the remaining holds at the end of the answer.
func (a *answer) end(how Settled) {
	for _, r := range a.readings {
		if how.Whole {
			r.of.End()
		} else {
			r.of.Close()
		}
	}
	a.settleFinal()
	for _, h := range a.held {
		a.endHold(h, how)
	}
}

// endHold settles a hold that no usage has settled.
func (a *answer) endHold(h *held, how Settled) {
	m := h.meter
	seen, text := uint64(0), uint64(0)
	if of := a.reader(m.fields); of != nil {
		of.Scanner(func(s *usage.Scanner) {
			u, known, _ := s.Usage()
			if known {
				seen = m.cost(u, a.q)
			}
			text, how.Whole = s.Text(), how.Whole || s.Ended()
			m.state.bad.Add(s.Bad())
		})
		if of.Unread() {
			m.state.unread.Add(1)
		}
	}
	if h.settled {
		return
	}
	if n, ok := a.told(m); ok {
		if seen = n; how.Whole {
			h.settle(n, byUsage, a.q)
			return
		}
	}
	switch {
	case !how.Reached, how.Whole && (a.status < 200 || a.status > 299) && a.status != http.StatusSwitchingProtocols:
		h.settle(0, canceled, a.q)
	case how.Whole && m.tokens.Unknown == rulefile.UnknownFree:
		h.settle(seen, free, a.q)
	case how.Whole && m.tokens.Unknown == rulefile.UnknownDelivered,
		!how.Whole && m.tokens.Abort.Kind == rulefile.AbortDelivered:
		h.settle(max(seen, m.delivered(a.q, text)), delivered, a.q)
	default:
		h.settle(max(seen, h.tokens, m.delivered(a.q, text)), kept, a.q)
	}
}

// The method told returns the cost that the header or the trailer of the answer reports.
func (a *answer) told(m *Meter) (cost uint64, ok bool) {
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
		m.state.bad.Add(1)
	}
	return cost, ok
}
