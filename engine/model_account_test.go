package engine

import (
	"math"
	"math/bits"

	"github.com/weir-go/weir/internal/reference"
)

// An account has the exact debt of one key in the model of a limiter.
type account interface {
	under(q *grants) // applies the limit of a quota to the calls that follow
	take(at int64, n uint64) bool
	charge(at int64, n, limits uint64) (charged uint64) // charges up to n; the debt is then at most limits * limit
	remaining(at int64) uint64
	retry(at int64, n uint64) int64 // nanoseconds until n tokens are available; n is at most the limit
	reset(at int64) int64
	idle(at int64) bool
	clear()
	paper(at int64, n uint64) paper
	giveBack(at int64, of *paper, n uint64, near nearby)
	refund(at int64, n uint64, near nearby)
}

// grants has the numbers of the limit under which a call is made: the limiter's own policy, a tier or a quota.
type grants struct {
	name   string
	key    func(Key) Key
	policy Policy
	ticks  ticker
	token  int64
	tokens uint64 // if 0, everything is refused
	all    bool   // everything is allowed
	ever   uint64 // the highest limit that these grants ever had
	made   int
}

func (q *grants) limit() int64 { return int64(q.tokens) * q.token }

// paper is the model's receipt of a take. n is the number of tokens that were not given back yet.
type paper struct {
	n     uint64
	at    int64
	q     *grants
	full  int64 // tick at which the bucket would be full after the take
	given int64 // how often tokens had been given back to the bucket before the take
	mark  reference.Mark
}

// nearby has what a limiter knows about the keys near the key of a call.
type nearby struct {
	latest int64 // the latest time of a grant, of a waiting request that is due, or of the call
}

// A ticker converts nanoseconds to ticks, the units of a debt, and back.
type ticker struct {
	perNano          int64
	refill, interval int64
}

func (c ticker) ticks(at int64) int64 {
	if c.perNano > 0 {
		return at * c.perNano
	}
	return at / c.interval * c.refill
}

func (c ticker) wait(at, ticks int64) int64 {
	switch {
	case ticks <= 0:
		return 0
	case c.perNano > 0:
		return (ticks + c.perNano - 1) / c.perNano
	}
	return (at/c.interval+(ticks+c.refill-1)/c.refill)*c.interval - at
}

// tickerOf returns the ticker of a limiter of one rate.
func tickerOf(p Policy) ticker {
	switch p.algorithm {
	case AlgorithmTokenBucket:
		a, b := int64(p.rate.Tokens), int64(p.rate.Period)
		for b > 0 {
			a, b = b, a%b
		}
		return ticker{perNano: int64(p.rate.Tokens) / a}
	case AlgorithmBatchRefill:
		return ticker{refill: int64(p.refill), interval: int64(p.window)}
	}
	return ticker{}
}

// A bucket is the account of a token bucket: the tick at which it is full.
type bucket struct {
	ticker
	q     *grants
	full  int64
	given int64
	*prices
	price int64
}

// prices has what a limiter of several rates knows about all keys.
type prices struct {
	fastest   int64        // the lowest price at which a debt of any key was converted; 0 if none was
	clock     func() int64 // the earliest time at which a later call may be decided
	watermark func() int64
	ahead     func() int64 // the latest time at which a request was granted or a waiting request is due
}

func (b *bucket) seen(at int64) int64 {
	if b.prices == nil || b.price == 0 || b.price == b.q.token {
		return b.owed(at)
	}
	return b.counted(at, min(at, b.clock()), max(at, b.ahead()))
}

// counted returns the debt in ticks, at the price of the call's quota.
func (b *bucket) counted(at, earliest, latest int64) int64 {
	owed := b.owed(earliest)
	kept := scaled(owed, b.price, b.q.token)
	if latest > earliest {
		later := owed
		if latest-earliest < b.wait(earliest, owed) {
			later = scaled(b.owed(latest), b.price, b.q.token) + b.ticks(latest) - b.ticks(earliest)
		}
		kept = max(kept, later)
	}
	return max(min(kept, mostTicks+mostTicks/2)-(b.ticks(at)-b.ticks(earliest)), 0)
}

func (b *bucket) speeds() bool { return b.prices != nil && b.q.token < b.price }

func (b *bucket) charges(at, owed int64) {
	if b.prices != nil && b.price != b.q.token {
		if b.owed(b.watermark()) > 0 && (b.fastest == 0 || min(b.price, b.q.token) < b.fastest) {
			b.fastest = min(b.price, b.q.token)
		}
		b.price, b.given = b.q.token, b.given+1
	}
	b.set(at, owed)
}

// mostTicks is the largest debt that a record can hold.
const mostTicks = 1 << 51

func (b *bucket) under(q *grants) { b.q = q }

func (b *bucket) owed(at int64) int64 { return max(b.full-b.ticks(at), 0) }

func (b *bucket) set(at, owed int64) { b.full = b.ticks(at) + owed }

func (b *bucket) take(at int64, n uint64) bool {
	if n > b.q.tokens || b.retry(at, n) > 0 {
		return false
	}
	b.charges(at, b.seen(at)+int64(n)*b.q.token)
	return true
}

func (b *bucket) reserve(at int64, n uint64, within int64) (wait int64, ok bool) {
	if b.perNano > 0 {
		within = min(within, mostTicks/b.perNano)
	}
	owed := b.seen(at) + int64(n)*b.q.token
	if more := b.ticks(at+min(within, math.MaxInt64-at)) - b.ticks(at); owed > min(b.q.limit()+more, mostTicks) {
		return 0, false
	}
	b.charges(at, owed)
	return b.wait(at, owed-b.q.limit()), true
}

func (b *bucket) charge(at int64, n, limits uint64) uint64 {
	bound := int64(mostTicks)
	if limits < uint64(bound/b.q.limit()) {
		bound = int64(limits) * b.q.limit()
	}
	charged := min(n, uint64(max(bound-b.seen(at), 0)/b.q.token))
	if charged > 0 {
		b.charges(at, b.seen(at)+int64(charged)*b.q.token)
	}
	return charged
}

func (b *bucket) remaining(at int64) uint64 {
	return uint64(max(b.q.limit()-b.seen(at), 0) / b.q.token)
}

func (b *bucket) retry(at int64, n uint64) int64 {
	if n == 0 {
		return 0
	}
	if b.prices == nil || b.price == 0 || b.price == b.q.token {
		return b.wait(at, b.owed(at)+int64(n)*b.q.token-b.q.limit())
	}
	if b.speeds() { // a refused request makes the debt come back faster
		return b.wait(at, b.seen(at)+int64(n)*b.q.token-b.q.limit())
	}
	// A binary search finds the first instant at which the debt is small enough.
	may, earliest := b.q.limit()-int64(n)*b.q.token, min(at, b.clock())
	first, last := int64(0), b.wait(earliest, b.owed(earliest)) // sort.Search counts in int, which may have 32 bits
	for first < last {
		passed := first + (last-first)/2
		if b.counted(at+passed, earliest+passed, max(at+passed, b.ahead())) <= may {
			last = passed
		} else {
			first = passed + 1
		}
	}
	return first
}

// reprices converts a debt after the price of its tier has changed, so that the key owes the same number of tokens.
func (b *bucket) reprices(at, latest, from, to int64) {
	if scaled(b.owed(at), from, to) <= mostTicks {
		b.price = to
		b.change(at, latest, at, from, to, b.ticker, math.MaxInt64)
	}
}

// change converts a debt after the cost of a token has changed.
func (b *bucket) change(at, latest, promised, from, to int64, ticks ticker, highest int64) {
	if from == to && ticks == b.ticker {
		return
	}
	owed := b.owed(at)
	lasts := func(owed int64) int64 {
		if ticks == b.ticker {
			return owed
		}
		return ticks.ticks(at+b.wait(at, owed)) - ticks.ticks(at)
	}
	above := max(0, min(owed-highest, b.ticks(promised)-b.ticks(at)))
	kept := lasts(above) + scaled(owed-above, from, to)
	if latest-at < b.wait(at, owed) {
		kept = max(kept, scaled(b.owed(latest), from, to)+ticks.ticks(latest)-ticks.ticks(at))
	} else {
		kept = max(kept, lasts(owed))
	}
	ahead := max(0, min(ticks.ticks(latest)-ticks.ticks(at), mostTicks/2))
	b.full = ticks.ticks(at) + min(kept, mostTicks+ahead)
}

// scaled returns ticks * to / from, rounded up and at most 2^60.
func scaled(ticks, from, to int64) int64 {
	const many = 1 << 60
	high, low := bits.Mul64(uint64(ticks), uint64(to))
	if high >= uint64(from) {
		return many
	}
	quotient, remainder := bits.Div64(high, low, uint64(from))
	return int64(min(quotient+min(remainder, 1), many))
}

func (b *bucket) reset(at int64) int64 { return b.wait(at, b.owed(at)) }
func (b *bucket) idle(at int64) bool   { return b.owed(at) == 0 }
func (b *bucket) clear()               { b.full, b.price = 0, 0 }

func (b *bucket) paper(at int64, n uint64) paper {
	return paper{n: n, at: at, q: b.q, full: b.full, given: b.given}
}

// giveBack gives back what the key still owes because of a take.
func (b *bucket) giveBack(at int64, of *paper, n uint64, near nearby) {
	cost, latest := int64(n)*of.q.token, near.latest
	if b.prices != nil {
		b.giveBackPriced(at, of, n, latest)
		return
	}
	owed, back := b.owed(at), min(b.owed(latest), cost)
	last := of.given == b.given
	switch {
	case last && of.full == b.full:
		b.full -= cost
		of.full -= cost
		return
	case last:
		back = min(back, max(of.full-b.ticks(latest), 0))
	default:
		back = min(back, max(int64(of.n)*of.q.token-(b.ticks(latest)-b.ticks(of.at)), 0))
	}
	b.set(at, owed-back)
	b.given++
	of.full -= cost
	if last {
		of.given++
	}
}

// giveBackPriced is giveBack for a bucket with prices.
func (b *bucket) giveBackPriced(at int64, of *paper, n uint64, latest int64) {
	cost := int64(n) * b.price
	owed, back := b.owed(at), min(b.owed(latest), cost)
	last := of.given == b.given
	switch {
	case last && of.full == b.full:
		back = min(owed, cost)
	case last:
		back = min(back, max(of.full-b.ticks(latest), 0))
	default:
		least, passed := min(b.price, of.q.token), b.ticks(latest)-b.ticks(of.at)
		if b.fastest > 0 {
			least = min(least, b.fastest)
		}
		if least < b.price {
			passed = scaled(passed, least, b.price)
		}
		back = min(back, max(int64(of.n)*b.price-passed, 0))
	}
	b.set(at, owed-back)
	b.given++
	of.full -= int64(n) * of.q.token
	if last {
		of.given++
	}
}

// refund gives tokens back without a receipt, but not more than the debt.
func (b *bucket) refund(at int64, n uint64, near nearby) {
	owed, token := b.owed(at), b.q.token
	if b.prices != nil {
		token = b.price
	}
	back := owed
	if n < uint64(owed/token)+1 {
		back = min(owed, int64(n)*token)
	}
	if b.ticks(near.latest) > b.ticks(at) {
		back = 0
	}
	b.set(at, owed-back)
	b.given++
}

// A window is the account of any algorithm that counts tokens.
type window struct {
	windowed
	q *grants
}

type windowed interface {
	reference.Debtor
	Under(limit uint64)
	Mark() reference.Mark
	GiveBack(nanos int64, of reference.Mark, n uint64)
}

func (w *window) under(q *grants) {
	w.q = q
	w.Under(q.tokens)
}

func (w *window) take(at int64, n uint64) bool                     { return w.Take(at, n) }
func (w *window) charge(at int64, n, limits uint64) uint64         { return w.Charge(at, n, limits*w.q.tokens) }
func (w *window) remaining(at int64) uint64                        { return w.Remaining(at) }
func (w *window) reset(at int64) int64                             { return w.ResetAfter(at) }
func (w *window) idle(at int64) bool                               { return w.Idle(at) }
func (w *window) clear()                                           { w.Reset() }
func (w *window) giveBack(at int64, of *paper, n uint64, _ nearby) { w.GiveBack(at, of.mark, n) }
func (w *window) refund(at int64, n uint64, _ nearby)              { w.Refund(at, n) }

func (w *window) retry(at int64, n uint64) int64 {
	if n == 0 {
		return 0
	}
	return w.RetryAfter(at, n)
}

func (w *window) paper(at int64, n uint64) paper { return paper{n: n, at: at, q: w.q, mark: w.Mark()} }
