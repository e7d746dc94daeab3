package script

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/engine"
)

const maxWindow = 365 * 24 * time.Hour

// A Limit is a policy in the numbers that the scripts use. It is safe for concurrent use.
type Limit struct {
	*algorithm
	terms       Terms
	tokens      uint64 // 0 if every question has a quota
	num, den    int64  // for a token bucket: num/den tokens per microsecond
	widest      uint64 // the largest limit of keys: in units for a bucket, otherwise in tokens
	window      int64  // in microseconds
	aligned     bool
	calendar    *atomicbucket.Calendar // for windows of the calendar; nil for others
	kind        string                 // the kind of these windows
	clockOffset atomic.Int64           // for the calendar: by how many seconds the server's clock is ahead
	arguments   []string               // arguments that the script gets
	weight      int
}

// Terms are settings of a limit in addition to its policy. The zero Terms stand for the defaults.
type Terms struct {
	MaxDebt  uint64               // how many limits a key may owe; 0 means 3, or 2 for a sliding log
	MaxQuota uint64               // the largest limit of a window's quota; 0 means the policy's limit
	Refusals engine.RefusalCharge // what a refused request costs
	// Life is how long a place in flight is kept without a renewal. 0 means 10 seconds, or the lifetime of the policy
	// if that is less.
	Life time.Duration
}

// NewLimit returns the limit for a policy, with a window rounded up to whole microseconds. It returns an error for a
// batch refill, and for numbers outside the ranges of [engine.Policy]. A bucket that takes more than 10 years to fill,
// and debts that the scripts cannot count, are errors, too.
func NewLimit(p engine.Policy, terms Terms) (*Limit, error) {
	limit, err := newLimit(p, terms)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", p, err)
	}
	return limit, nil
}

func newLimit(p engine.Policy, terms Terms) (*Limit, error) {
	if p == engine.Unlimited() || p == engine.Blocked() {
		return nil, errors.New("it has no numbers of its own: want a token bucket or a window, and use this one as a quota (Limiter.Quota)")
	}
	algorithm, ok := algorithms[p.Algorithm()]
	switch {
	case ok:
	case p.Algorithm() == engine.NoAlgorithm:
		return nil, errors.New("the zero Policy limits nothing: want engine.TokenBucket(rate, burst) or one of its siblings")
	case p.Algorithm() == engine.AlgorithmBatchRefill:
		return nil, errors.New("a store does not keep batches: want a token bucket or a window")
	default:
		return nil, fmt.Errorf("the algorithm %q is not kept in a store", p.Algorithm())
	}
	if p.IsAligned() && p.Algorithm() != engine.AlgorithmFixedWindow {
		return nil, errors.New("only a fixed window can be aligned")
	}
	_, _, isCalendar := p.Calendar()
	if isCalendar {
		algorithm = calendarWindow
	}
	limit := &Limit{algorithm: algorithm, terms: terms, tokens: p.Limit(), aligned: p.IsAligned()}
	if limit.terms.MaxDebt == 0 {
		limit.terms.MaxDebt = algorithm.defaultMaxDebt
	}
	isOfQuotas := p == engine.TokenBuckets(p.Longest())
	if limit.tokens < 1 && !isOfQuotas || limit.tokens > limit.maxLimit {
		return nil, fmt.Errorf("limit of %d tokens: want 1 to %d", limit.tokens, limit.maxLimit)
	}
	var err error
	switch {
	case isOfQuotas:
		err = limit.makeTicks(p.Longest())
	case p.Algorithm() == engine.AlgorithmTokenBucket:
		err = limit.makeBucket(p.Rate(), p.Window())
	case p.Algorithm() == engine.AlgorithmConcurrency:
		err = limit.makeInFlight(p.Window())
	case isCalendar:
		err = limit.makeCalendar(p)
	default:
		err = limit.makeWindow(p.Window())
	}
	if err != nil {
		return nil, err
	}
	limit.setArguments()
	return limit, nil
}

func (l *Limit) makeBucket(r engine.Rate, fill time.Duration) error {
	rate, err := perMicrosecond(r)
	if err != nil {
		return err
	}
	if err := l.checkTerms(fill); err != nil {
		return err
	}
	if l.num, l.den, err = fraction(rate, l.tokens, l.terms.MaxDebt); err != nil {
		return err
	}
	l.widest = l.tokens * uint64(l.den)
	return nil
}

func (l *Limit) makeWindow(window time.Duration) error {
	if window < time.Microsecond || window > maxWindow {
		return fmt.Errorf("window of %v: want 1µs to %v", window, maxWindow)
	}
	l.window = wholeMicros(window)
	l.widest = max(l.tokens, l.terms.MaxQuota)
	return l.checkTerms(window)
}

// PlaceLife is the default Life of [Terms].
const PlaceLife = 10 * time.Second

func (l *Limit) makeInFlight(lifetime time.Duration) error {
	if l.terms.MaxQuota > 0 || l.terms.Refusals != engine.ChargeNothing || l.terms.MaxDebt != l.defaultMaxDebt {
		return errors.New("requests in flight have no quotas, no debt and no charge of refusals: want no MaxQuota, MaxDebt or ChargeRefusals")
	}
	l.window = wholeMicros(min(cmp.Or(l.terms.Life, PlaceLife), lifetime))
	l.widest = l.tokens
	return nil
}

// IsInFlight reports whether the limit counts requests in flight.
func (l *Limit) IsInFlight() bool { return l.algorithm == algorithms[engine.AlgorithmConcurrency] }

// Life returns how long a place in flight is kept without a renewal.
func (l *Limit) Life() time.Duration { return time.Duration(l.window) * time.Microsecond }

// checkTerms checks the terms of a limit. fill is the time in which all tokens of the limit come back.
func (l *Limit) checkTerms(fill time.Duration) error {
	switch {
	case l.terms.MaxQuota > 0 && l.window == 0:
		return errors.New("MaxQuota is of windows and logs: token buckets need none")
	case l.terms.MaxQuota > l.maxLimit:
		return fmt.Errorf("MaxQuota(%d): want at most %d", l.terms.MaxQuota, l.maxLimit)
	}
	// The debt is bounded because the scripts represent larger numbers of tokens only approximately.
	maxDebt := l.defaultMaxDebt * l.maxLimit / max(l.tokens, l.terms.MaxQuota, 1)
	if fill > 0 { // at least the default, because a limit that fills too slowly gets another error
		maxDebt = max(min(maxDebt, uint64(longestDebt/fill)), l.defaultMaxDebt)
	}
	if l.terms.MaxDebt < l.defaultMaxDebt || l.terms.MaxDebt > maxDebt {
		return fmt.Errorf("MaxDebt(%d): want %d limits, because the shares of nodes may owe so much, to %d", l.terms.MaxDebt, l.defaultMaxDebt, maxDebt)
	}
	return nil
}

const longestDebt = 3 * maxFillTime

func (l *Limit) setArguments() {
	l.arguments = append([]string{
		strconv.Itoa(int(l.terms.Refusals)), strconv.FormatUint(l.terms.MaxDebt, 10), strconv.FormatUint(l.widest, 10),
	}, l.numbers(l)...)
	l.weight = Full / MaxKeys
	if l.algorithm == algorithms[engine.AlgorithmSlidingLog] || l.IsInFlight() {
		l.weight = max(l.weight, int(l.widest))
	}
}

// Tokens returns the limit of a key, or 0 if every question has a quota.
func (l *Limit) Tokens() uint64 { return l.tokens }

// MaxDebt returns how many tokens a key may owe under a limit of the given number of tokens.
func (l *Limit) MaxDebt(tokens uint64) uint64 { return l.terms.MaxDebt * tokens }

// IsOfQuotas reports whether every question to the limit has a quota.
func (l *Limit) IsOfQuotas() bool { return l.tokens == 0 }

// Weight returns the weight of each key of the limit in a call. Keys that store one entry for each token weigh more,
// because the server answers no other client while a script runs. A call carries one key, or up to [MaxKeys] keys whose
// weights are together at most [Full].
func (l *Limit) Weight() int { return l.weight }

// Full is the maximum number of tokens that the logs of one call may store together. A server appends that many in less
// than a millisecond.
const Full = 1 << 15

// Kind returns a text for the algorithm and its window, such as "fixed60000000" for a window in microseconds. The text
// must be part of a key's name. Limits of one kind share their state: tokens that are taken under one limit also count
// under the others.
func (l *Limit) Kind() string {
	switch {
	case l.window == 0 && l.tokens == 0:
		return "quotas"
	case l.window == 0 || l.IsInFlight():
		return l.algorithm.kind
	case l.calendar != nil:
		return l.kind
	case l.aligned:
		return "aligned" + strconv.FormatInt(l.window, 10)
	}
	return l.algorithm.kind + strconv.FormatInt(l.window, 10)
}
