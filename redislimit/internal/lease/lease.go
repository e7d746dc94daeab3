package lease

import (
	"time"

	"github.com/weir-go/weir/internal/word"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// A Lease contains the tokens of one key that a node has in hand. Take, Refund, Balance, Remaining and Waits may be
// called from any goroutine, and Expire by one goroutine at a time. The other methods are only for the caller that got
// renew from Take, or settle from Expire.
type Lease struct {
	word       word.Word  // a state
	denyUntil  word.Int64 // until then, the node refuses without asking
	denyFrom   word.Word  // the smallest cost that it refuses
	expires    word.Int64 // when the tokens in hand must be given back
	renewBelow word.Word  // a renewal begins when fewer tokens than this are in hand
	remaining  word.Word  // in the store at the last answer
	retryAt    word.Int64 // when there are tokens again, by the last refusal
	resetAt    word.Int64 // when everything will be back, by the last answer

	terms *Terms
	// The following fields belong to the renewal (L4).
	question    script.Ask // of the latest renewal or settlement
	carriedCost uint64     // the cost of the request that waits for the renewal; 0 if none does
	sent        int64      // when the renewal began
	lastSent    int64      // when the last answered renewal began; 0 for none
	lastTokens  uint64     // tokens in hand after the last answered renewal
	minGrant    uint64     // the fewest tokens worth a renewal, without the waiting request
	smallPace   pace       // of tokens in hand that are spent, and of requests up to the overdraft
	totalPace   pace       // smallPace, plus the pace of large requests that went with renewals
	window      int64      // the window of the tokens in hand
	visitedWord uint64     // the word at the last call of Expire
}

// New returns a lease without tokens in hand. It begins with a debt, of at most the overdraft. Until the first answer,
// the lease assumes that the complete limit is available.
func New(terms *Terms, debt uint64) *Lease {
	l := &Lease{terms: terms}
	l.word.Store(uint64(healthy.with(0, debt)))
	return l
}

// A Verdict is the decision of a lease about a request.
type Verdict uint8

const (
	// Refused: no tokens are in hand, and the store has none for now.
	Refused Verdict = iota
	// Admitted: the request is paid with tokens in hand, or on overdraft.
	Admitted
	// Unknown: the tokens in hand are too few, so the caller must ask the store. If renew is true, the request goes
	// with the renewal. Otherwise the caller asks a separate question.
	Unknown
	// Retired: the lease is no longer in use. The caller must look up the key again.
	Retired
)

// Take takes n tokens, all or none. It calls the function now only if it needs the time. If renew is true, the caller
// must call Renewal and then Apply or Fail, whatever the verdict is. Take is lock-free: a CAS fails only because
// another call has succeeded.
func (l *Lease) Take(n uint64, now func() int64) (v Verdict, renew bool) {
	for {
		w := state(l.word.Load())
		tokens, debt := w.tokens(), w.debt()
		next := w
		switch {
		case w&retired != 0:
			return Retired, false
		case n <= tokens:
			next, v = w.with(tokens-n, debt), Admitted
			renew = w&renewing == 0 && tokens-n < l.renewBelow.Load() && l.denyUntil.Load() <= now()
		case n > l.terms.Cap():
			return Unknown, false
		case n >= l.denyFrom.Load() && l.denyUntil.Load() > now():
			return Refused, false
		case w&healthy != 0 && debt+n <= l.terms.Overdraft:
			next, v, renew = w.with(tokens, debt+n), Admitted, w&renewing == 0
		case w&(renewing|healthy) == renewing && n <= max(l.renewBelow.Load(), 1):
			return Refused, false // the renewal may bring the tokens for this request, or only for the next one
		default:
			v, renew = Unknown, w&renewing == 0
		}
		if renew {
			next = next&^renewing + generation | renewing
		}
		if next == w || l.word.CompareAndSwap(uint64(w), uint64(next)) {
			return v, renew
		}
	}
}

// Renewal returns the question to the store, because of a request of n tokens. The question charges the debt. If
// isWaiting is true, it also asks for the n tokens of the waiting request.
//
// It also asks for the tokens of the next 2τ, if the measured pace promises at least two requests of n tokens in that
// time. At a slower pace, it leaves these tokens to other nodes.
func (l *Lease) Renewal(now int64, n uint64, isWaiting bool) script.Ask {
	w := state(l.word.Load())
	l.sent, l.carriedCost = now, 0
	if isWaiting {
		l.carriedCost = n
	}
	if l.lastSent != 0 && now > l.lastSent {
		spent := max(float64(l.lastTokens)-float64(w.tokens()), 0) + float64(w.debt())
		seconds := float64(now-l.lastSent) / float64(time.Second)
		l.totalPace.note((spent + float64(l.carriedCost)) / seconds)
		if l.carriedCost <= l.terms.Overdraft {
			spent += float64(l.carriedCost)
		}
		l.smallPace.note(spent / seconds)
	}
	p := l.totalPace
	if n <= l.terms.Overdraft { // small requests must not use tokens that large ones may need
		p = l.smallPace
	}
	l.minGrant, l.question = 0, script.Ask{Need: l.carriedCost, Want: l.carriedCost, Debt: w.debt()}
	if horizon := 2 * l.terms.Ahead.Seconds(); p.low*horizon >= 2*float64(n) {
		room := max(l.terms.Cap()-min(w.tokens(), l.terms.Cap()), 1) // afterwards at most Cap tokens are in hand
		l.minGrant = min(l.terms.minRenewal(p.last), room)
		l.question.Need = max(l.minGrant, l.carriedCost)
		l.question.Want += min(l.terms.clampTokens(p.last*horizon), room)
	}
	return l.question
}

// Settlement returns a question that gives tokens back and charges debt, and asks for no tokens.
func (l *Lease) Settlement(now int64) script.Ask {
	l.sent, l.carriedCost = now, 0
	for {
		w := state(l.word.Load())
		if l.word.CompareAndSwap(uint64(w), uint64(w.with(0, w.debt())+generation)) { // L3
			l.question = script.Ask{Returned: w.tokens(), Debt: w.debt(), Window: l.window}
			return l.question
		}
	}
}

// Apply ends a renewal with the store's answer, and reports whether the waiting request is paid (L1).
func (l *Lease) Apply(a script.Answer, now int64) (isPaid bool) {
	l.remaining.Store(a.Remaining)
	l.resetAt.Store(now + int64(a.ResetAfter))
	l.window = a.Window
	granted := a.Granted
	if l.carriedCost > 0 && granted >= l.carriedCost {
		granted, isPaid = granted-l.carriedCost, true
	}
	switch {
	case granted > 0:
		l.expires.Store(l.sent + int64(l.terms.Life))
		l.renewBelow.Store(min(l.question.Need, granted))
	case l.question.Want > 0 && !isPaid:
		l.deny(a.RetryAfter, now)
	}
	isHealthy := a.Remaining*2 >= l.terms.Limit
	l.lastSent = l.sent
	l.end(granted, l.question.Debt, &isHealthy)
	return isPaid
}

// deny makes the lease refuse until the store can have enough tokens again. After a request above a worthwhile renewal,
// it refuses only requests of at least that size. Otherwise it refuses all requests, for a time that is partly random,
// so that the nodes do not all ask again together.
func (l *Lease) deny(retry time.Duration, now int64) {
	from, wait := uint64(0), float64(min(retry, l.terms.Life))
	if l.carriedCost > l.minGrant {
		from = l.carriedCost
	} else {
		wait *= 1 + l.terms.random()/2
	}
	l.retryAt.Store(now + int64(retry))
	l.denyFrom.Store(from)
	l.denyUntil.Store(now + int64(wait))
}

// Fail ends a renewal without an answer. The debt stays, and tokens that the call gave back are gone. For one τ, the
// lease does not ask again.
func (l *Lease) Fail(now int64) {
	l.denyFrom.Store(0)
	l.denyUntil.Store(now + int64(l.terms.Ahead))
	l.retryAt.Store(now + int64(l.terms.Ahead))
	l.end(0, 0, nil)
}

// end adds the granted tokens to those in hand, subtracts the charged debt, and clears renewing (L4).
func (l *Lease) end(granted, charged uint64, isHealthy *bool) {
	for {
		w := state(l.word.Load())
		tokens := min(w.tokens()+granted, MaxTokens)
		next := w.with(tokens, w.debt()-charged)&^renewing + generation
		if isHealthy != nil {
			next &^= healthy
			if *isHealthy {
				next |= healthy
			}
		}
		l.lastTokens = tokens // before the CAS: after it they are another renewal's
		if l.word.CompareAndSwap(uint64(w), uint64(next)) {
			return
		}
	}
}

// Expire must be called from time to time. settle is true if tokens have been in hand too long, or if debt is left
// over. The caller must then call Settlement, and after it Apply or Fail. isRetired is true if this call has retired
// the lease (L5).
func (l *Lease) Expire(now int64) (settle, isRetired bool) {
	w := state(l.word.Load())
	isIdle := uint64(w) == l.visitedWord
	l.visitedWord = uint64(w)
	switch {
	case w&(renewing|retired) != 0:
		return false, false
	case isIdle && w.tokens() == 0 && w.debt() == 0 && l.denyUntil.Load() <= now && (w&healthy != 0 || l.resetAt.Load() <= now):
		return false, l.word.CompareAndSwap(uint64(w), uint64(w|retired)) // L5
	case w.debt() > 0 && isIdle || w.tokens() > 0 && l.expires.Load() <= now:
		return l.word.CompareAndSwap(uint64(w), uint64(w+generation|renewing)), false
	}
	return false, false
}

// Refund puts n tokens back into the node's hand, and reports whether there was room for them.
func (l *Lease) Refund(n uint64) bool {
	for {
		w := state(l.word.Load())
		capacity := l.terms.Cap()
		if w&renewing != 0 {
			capacity /= 2 // a renewal may bring the other half
		}
		if w&retired != 0 || w.tokens()+n > capacity {
			return false
		}
		if l.word.CompareAndSwap(uint64(w), uint64(w.with(w.tokens()+n, w.debt())+generation)) {
			return true
		}
	}
}

// Balance returns the tokens in hand and the debt.
func (l *Lease) Balance() (tokens, debt uint64) {
	w := state(l.word.Load())
	return w.tokens(), w.debt()
}

// Remaining returns approximately how many tokens the key has left: in hand, and in the store at its last answer.
func (l *Lease) Remaining() uint64 {
	return min(l.remaining.Load()+state(l.word.Load()).tokens(), l.terms.Limit)
}

// Waits returns the times until a token is available and until the key has all its tokens again, by the store's last
// answers.
func (l *Lease) Waits(now int64) (retry, reset time.Duration) {
	return time.Duration(max(l.retryAt.Load()-now, l.denyUntil.Load()-now, 1)), time.Duration(max(l.resetAt.Load()-now, 0))
}
