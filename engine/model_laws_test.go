package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
)

// requireFits checks property (b) of docs/decisions/0031: within any time, taken tokens fit the largest burst and the
// highest rate.
func (m *model) requireFits(k *modelKey) {
	if k.vague {
		return
	}
	_, isBucket := k.account.(*bucket)
	for i, last := range k.story {
		if last.charged || last.n == 0 {
			continue
		}
		for _, first := range k.story {
			switch {
			case last.at < first.at:
			case isBucket:
				m.requireFitsIn(k, first, last, i)
			default:
				m.requireFitsWindow(k, first, last, i)
			}
		}
	}
}

// requireFitsIn checks requireFits for a bucket, between two events. Each change of a policy with batches may add one
// batch, because a batch comes all at once.
func (m *model) requireFitsIn(k *modelKey, first, last *event, i int) {
	tokens, from, to := uint64(0), i, i
	for j, e := range k.story {
		if e.at >= first.at && e.at <= last.at && (!e.charged || j <= i) {
			tokens, from, to = tokens+e.n, min(from, j), max(to, j)
		}
	}
	burst, came, more := last.q.tokens, int64(0), int64(0)
	for _, e := range k.story[from : to+1] { // the limits that the key had until the last event
		ticks, begin := e.q.ticks, first.at
		if ticks.perNano != 1 || ticks != m.kind.ticker {
			begin-- // a refill at that moment counts, and so does the nanosecond by which a wait may be rounded up
		}
		came = max(came, (ticks.ticks(last.at)-ticks.ticks(begin))/e.q.token)
		if e.q.tokens == 0 {
			more += ticks.refill
		}
		if !e.charged {
			burst = max(burst, e.q.tokens)
		}
	}
	if more > 0 {
		came += more + k.story[from].q.ticks.refill
	}
	m.law(tokens <= burst+uint64(came), "(b)", tokens, burst+uint64(came), k, last.q)
}

// requireFitsWindow checks requireFits for a window, between two events. A fixed window may grant one limit more, and a
// counter one token more.
func (m *model) requireFitsWindow(k *modelKey, first, last *event, i int) {
	sum, limit, came, from, to := uint64(0), uint64(0), uint64(0), i, i
	for j, e := range k.story {
		if e.at >= first.at && e.at <= last.at && e.q.tokens > 0 {
			from, to = min(from, j), max(to, j)
		}
	}
	for _, e := range k.story[from : to+1] {
		if e.q.tokens == 0 {
			continue
		}
		if limit = max(limit, e.q.tokens); e.at >= first.at && e.at <= last.at && !e.charged {
			sum += e.n
		}
		length := uint64(e.q.policy.window)
		if e.q.policy.calendar != nil {
			length = length / 10 * 9 // no month is shorter than 9/10 of a window of the policy
		}
		came = max(came, e.q.tokens*uint64(last.at-first.at)/length)
	}
	switch p := m.kind.policy; {
	case p.algorithm == AlgorithmFixedWindow:
		limit *= 2
	case p.algorithm == AlgorithmSlidingWindow:
		limit++
	case p.algorithm == AlgorithmConcurrency:
		return
	}
	m.law(sum <= limit+came, "(b)", sum, limit+came, k, last.q)
}

func (m *model) law(holds bool, name string, is, want uint64, k *modelKey, q *grants) {
	if !holds {
		require.FailNow(m.t, fmt.Sprintf("broken: %s: %s: key %d under %s: %d beside %d", name, m.call, slices.Index(m.keys[:], k), q.name, is, want))
	}
}

// A told value has a limiter's answers for a key under each grant.
type told struct {
	owed uint64
	of   [][2]Decision
}

func (m *model) tells() (all []told) {
	for _, k := range m.keys {
		says := told{of: make([][2]Decision, len(m.grants))}
		says.owed, _ = m.limiter.Owed(k.key)
		for i, g := range m.grants {
			says.of[i] = [2]Decision{m.limiter.Peek(g.key(k.key), 1), m.limiter.Peek(g.key(k.key), max(g.tokens, 1))}
		}
		all = append(all, says)
	}
	return all
}

// requireChange checks properties (a), (c) and (d) of docs/decisions/0031 for every key after a change.
func (m *model) requireChange(c *change, before []told) {
	ahead := max(m.leading, m.promised, m.seen) - m.seen
	for i, says := range m.tells() {
		k := m.keys[i]
		for j, g := range m.grants {
			if !m.concerns(c, k, g) {
				for n, was := range before[i].of[j] {
					m.requireSame(was, says.of[j][n], k, g)
				}
			}
		}
		for j, g := range m.grants {
			if _, changed := c.was[g]; changed {
				m.requireChanged(c, k, g, before[i].owed, ahead, before[i].of[j], says.of[j])
			}
		}
		for j, g := range m.grants {
			if _, changed := c.was[g]; !changed && ahead == 0 && m.concerns(c, k, g) {
				left, was := says.of[j][0].Remaining, before[i].of[j][0].Remaining
				m.law(left <= was, "(b)", left, was, k, g)
				m.law(was-left <= 1, "(a)", left, was, k, g)
			}
		}
	}
}

// concerns reports whether a change affects the answers for a key under the grants q.
func (m *model) concerns(c *change, k *modelKey, q *grants) bool {
	_, changed := c.was[q]
	_, last := c.was[k.last]
	return changed || last && m.kind.hasPrices()
}

// requireSame checks property (a). A change of a shared table may make waits a nanosecond longer.
func (m *model) requireSame(was, is Decision, k *modelKey, q *grants) {
	late := time.Duration(m.at(m.seen) - m.seen)
	if is.RetryAfter-was.RetryAfter <= late && is.ResetAfter-was.ResetAfter <= late {
		was.RetryAfter, was.ResetAfter = max(was.RetryAfter, is.RetryAfter), max(was.ResetAfter, is.ResetAfter)
	}
	m.law(was == is, "(a)", uint64(is.RetryAfter), uint64(was.RetryAfter), k, q)
}

// requireChanged checks properties (b), (c) and (d) for a key that owed tokens before the change.
func (m *model) requireChanged(c *change, k *modelKey, q *grants, owed uint64, ahead int64, was, is [2]Decision) {
	if q.tokens == 0 {
		return
	}
	m.law(is[0].Limit == q.tokens, "(d)", is[0].Limit, q.tokens, k, q)
	left := q.tokens - min(owed, q.tokens)
	least, most := left, left
	switch k.account.(type) {
	case *window:
		least, most = q.leaves(c, left)
		for i := range is {
			wait := max(q.longest()+time.Duration(ahead+m.at(m.seen)-m.seen), was[i].RetryAfter)
			if c.one && q.policy.aligned { // the window ends with the first whole window of the clock
				wait += q.policy.window
			}
			before := was[1].RetryAfter                              // the wait for all tokens is the rest of a window
			if was := c.was[q]; c.one && owed > m.limits(0).Lowest { // tokens above a limit may count as long as before
				wait = max(wait, q.until(m.seen, max(was.longest()+time.Duration(ahead), before)))
			}
			if m.stretched {
				wait = max(wait, before)
			}
			if m.stretched && q.policy.algorithm == AlgorithmSlidingWindow {
				// An estimate may count in a later window of the clock, so the wait may be longer.
				wait = min(wait, 2*m.longest) + 2*q.policy.window
			}
			m.law(is[i].RetryAfter <= wait, "(c)", uint64(is[i].RetryAfter), uint64(wait), k, q)
		}
	case *bucket:
		if owed+q.tokens > uint64(mostTicks/2/q.token) {
			return // a record may have no room for that
		}
		stays := m.stays(c, k, owed)
		late, counts := m.at(m.seen)-m.seen+m.until(c, stays, ahead), owed-stays
		for i, more := range []uint64{max(q.tokens, counts+1) - q.tokens, max(q.tokens, counts)} {
			wait := time.Duration(late + c.to.wait(m.seen, int64(max(more, 1))*q.token))
			m.law(is[i].RetryAfter <= wait, "(c)", uint64(is[i].RetryAfter), uint64(wait), k, q)
		}
		if ahead > 0 && owed > 0 {
			least -= min(least, uint64(c.to.ticks(m.seen+ahead)-c.to.ticks(m.seen))/uint64(q.token)+1)
		}
	}
	m.law(is[0].Remaining >= least, "(d)", is[0].Remaining, least, k, q)
	m.law(is[0].Remaining <= most || ahead > 0, "(b)", is[0].Remaining, most, k, q)
}

// stays returns how many of a key's tokens take as long to come back as before the change.
func (m *model) stays(c *change, k *modelKey, owed uint64) uint64 {
	was, changed := c.was[m.grants[0]]
	if m.kind.hasPrices() || !changed || k.last == nil || !m.isTier(k.last) {
		return 0
	}
	highest, at := uint64(c.highest/was.token), m.at(m.seen)
	until := uint64(c.from.ticks(max(at, m.promised))-c.from.ticks(at)) / uint64(was.token)
	return min(owed-min(owed, highest), until)
}

// until returns how long a key's debt may still come back at the previous rate.
func (m *model) until(c *change, stays uint64, ahead int64) int64 {
	own, was := m.grants[0], c.was[m.grants[0]]
	if m.kind.hasPrices() || was.token == 0 || c.to.perNano == 0 || own.token*c.from.perNano < was.token*c.to.perNano {
		if ahead > 0 {
			ahead += c.to.interval
		}
		return ahead
	}
	return min(ahead, c.from.wait(m.seen, int64(stays+1)*was.token))
}

// until returns the time until a window ends after a change.
func (q *grants) until(now int64, after time.Duration) time.Duration {
	if p := q.policy; p.aligned && p.algorithm == AlgorithmFixedWindow {
		length := int64(p.window)
		return time.Duration((now+int64(after)+length-1)/length*length - now)
	}
	return after
}

func (q *grants) longest() time.Duration {
	if q.policy.algorithm == AlgorithmFixedWindow || q.policy.algorithm == AlgorithmSlidingLog {
		return q.policy.window
	}
	return 2 * q.policy.window
}

// leaves returns the lowest and the highest number of tokens that may be left after a change.
func (q *grants) leaves(c *change, left uint64) (least, most uint64) {
	switch {
	case c.one && q.policy.algorithm == AlgorithmSlidingWindow:
		return left - min(left, 1), left
	case c.one && q.policy.algorithm == AlgorithmSlidingLog:
		return left, q.tokens
	}
	return left, left
}
