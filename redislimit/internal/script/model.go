package script

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
)

// A Model is the server's state of one key. It decides as the scripts do, but in Go and at any given time. The zero
// Model is the state of a new key. All limits of a Model must be of one kind ([Limit.Kind]). Only one goroutine at a
// time may use a Model.
type Model struct {
	exists            bool
	at                int64   // the time of the level; the start of a window; the index of a sliding window
	level             float64 // a float64 as in Lua: in the units of den
	num, den          int64   // units of the level
	count             uint64
	wide              uint64 // how many tokens the window counts, if more were charged to it; otherwise 0
	current, previous uint64
	log               []int64 // oldest first
	places            []place // places in flight, in the order in which they are forgotten
}

// Ask returns the answer of [Limit.Run] at the server's time nowMicros, in microseconds since 1970. The time may go
// back from one call to the next. Need must be at most Want, unless Want is 0.
func (m *Model) Ask(l *Limit, nowMicros int64, a Ask) Answer {
	a = l.clamp(a)
	answer := l.model(m, l, nowMicros, a)
	if l.terms.Refusals == engine.ChargeNothing || a.Want == 0 || a.All || a.Returned+a.Debt > 0 || answer.Granted > 0 || a.Need == 0 {
		return answer
	}
	a.Want, a.Debt = 0, a.Need // the cost of a refused request becomes a debt
	if l.terms.Refusals == engine.ChargeTheRest {
		a.Debt = min(a.Need, answer.Remaining)
	}
	return l.model(m, l, nowMicros, a)
}

func (m *Model) tokenBucket(l *Limit, now int64, a Ask) Answer {
	q := l.quota(a)
	num, den := float64(l.num), float64(q.Units)
	full := float64(q.Tokens) * den
	level, left, at, changed := m.level, 0.0, m.at, false
	by, other := l.den, false // other: the state is in units of another quota, until tokens are taken or given back
	if l.tokens == 0 {
		by = int64(q.Units)
	}
	// Convert a state in units of an earlier limit or another quota, and keep the number of tokens.
	if m.exists && (m.num != l.num || m.den != by) {
		level = max(0, level-float64(max(0, now-at)*m.num))
		left, other = level, l.tokens == 0 && at <= now && (m.den < by || a.Want == 0)
		at, changed = now, true
		level = math.Ceil(level / float64(m.den) * float64(by))
	}
	level = min(level, num*1e15)
	back := changed || m.exists && now < at
	if m.exists && !back {
		level = max(0, level-float64(now-at)*num)
	}
	before, less := level, float64(a.Returned)*den
	if a.Window > AnyWindow && other { // the tokens may have come back at the rate of another quota
		less = 0
	} else if a.Window > AnyWindow { // the tokens that were owed at the take come back until Window
		less = min(less, float64(max(0, a.Window-now))*num)
	}
	level = max(0, level-less)
	level += min(float64(a.Debt), math.Floor(max(0, float64(l.terms.MaxDebt)*full-level)/den)) * den
	answer := decide(q, a, uint64((full-min(level, full))/den))
	other = other && level == before && answer.Granted == 0
	slower := other && m.den < by
	if answer.RetryAfter == unknown && slower {
		allowedLevel := float64(q.Tokens-a.Need) * float64(m.den)
		answer.RetryAfter = micros(uint64(math.Ceil((left - allowedLevel) / float64(m.num))))
	} else if answer.RetryAfter == unknown {
		answer.RetryAfter = micros(uint64(math.Ceil((level + float64(a.Need)*den - full) / num)))
	}
	level += float64(answer.Granted) * den
	answer.ResetAfter = micros(uint64(math.Ceil(level / num)))
	if answer.Granted > 0 && a.Window > 0 {
		answer.Window = now + answer.ResetAfter.Microseconds()
	}
	if other && (slower || answer.RetryAfter == 0) {
		answer.ResetAfter = micros(uint64(math.Ceil(left / float64(m.num))))
	}
	if !other && (level != before || back) { // otherwise the state is unchanged, and tokens come back from its time on
		m.exists, m.at, m.level, m.num, m.den = level > 0, now, level, l.num, by
	}
	return answer
}

func (m *Model) fixedWindow(l *Limit, now int64, a Ask) Answer {
	q := l.quota(a)
	first, latest := now, now
	if l.aligned {
		first = now - now%l.window
		latest = first + l.window
	}
	back := m.exists && m.at > latest
	m.at = min(m.at, latest)
	carry, over := uint64(0), int64(0)
	wide := m.holds(l, m.count)
	if ended := max(0, now-m.at) / l.window; m.exists && ended > 0 { // tokens above wide move to the next window
		if rest := m.count - min(m.count, wide); uint64(ended-1) <= rest/l.widest && rest > uint64(ended-1)*l.widest {
			carry, over = rest-uint64(ended-1)*l.widest, m.at+(ended+1)*l.window
		}
	}
	live := m.exists && now < m.at+l.window
	count := carry
	if !live {
		wide = l.widest
	} else {
		count = m.count
		if a.Window == m.at || a.Window == AnyWindow {
			count -= min(a.Returned, count)
		}
	}
	count = charged(count, a.Debt, l.terms.MaxDebt*q.Tokens)
	answer := decide(q, a, q.Tokens-min(count, q.Tokens))
	if !live && answer.Granted+a.Debt > 0 {
		live, back, m.exists, m.at = true, true, true, first
	}
	count += answer.Granted
	left := max(0, over-now)
	if live {
		if back || count != m.count { // otherwise the state is unchanged
			if m.count, m.wide = count, 0; count > wide {
				m.wide = wide
			}
		}
		answer.Window = m.at
		left = m.at + l.window - now
	}
	answer.ResetAfter = micros(uint64(left))
	if answer.RetryAfter == unknown {
		answer.RetryAfter = micros(uint64(left + int64(windowsUntil(count, wide, l.widest, q.Tokens-a.Need))*l.window))
	}
	return answer
}

// holds returns how many tokens the current window can count.
func (m *Model) holds(l *Limit, count uint64) uint64 {
	if m.wide > 0 {
		return max(l.widest, m.wide)
	}
	return max(l.widest, count)
}

// windowsUntil returns how many more windows must end until the number of tokens falls from count to at most room.
func windowsUntil(count, wide, widest, room uint64) uint64 {
	if count <= wide+room {
		return 0
	}
	return ceilDiv(count-wide-room, widest)
}

func (m *Model) slidingWindow(l *Limit, now int64, a Ask) Answer {
	q := l.quota(a)
	present := now / l.window
	back := m.exists && m.at > present+1
	m.at = min(m.at, present+1)
	index, current, previous := present, uint64(0), uint64(0)
	wide := l.widest
	switch held := m.holds(l, m.current); {
	case m.exists && m.at >= present:
		index, current, previous, wide = m.at, m.current, m.previous, held
	case m.exists: // tokens above a window's count move to the windows after it
		previous = min(m.current, held)
		current = m.current - previous
		for ended := present - m.at - 1; ended > 0 && previous > 0; ended-- {
			previous = min(current, l.widest)
			current -= previous
		}
	}
	current0, previous0 := current, previous
	switch a.Window {
	case index, AnyWindow:
		here := min(a.Returned, current)
		current -= here
		previous -= min(a.Returned-here, previous)
	case index - 1:
		previous -= min(a.Returned, previous)
	}
	current = charged(current, a.Debt, l.terms.MaxDebt*q.Tokens)
	finish := (index + 1) * l.window
	counted := current + scaled(previous, min(l.window, finish-now), l.window)
	answer := decide(q, a, q.Tokens-min(counted, q.Tokens))
	if answer.RetryAfter == unknown {
		count, end, spare := previous, finish, q.Tokens-a.Need-current
		if a.Need+current > q.Tokens {
			more := windowsUntil(current, wide, l.widest, q.Tokens-a.Need)
			count = min(current, wide)
			over := current - count
			for range more {
				count = min(over, l.widest)
				over -= count
			}
			end, spare = finish+int64(more+1)*l.window, q.Tokens-a.Need-over
		}
		// Find the largest part of the window for which the previous window's tokens count as less than spare+1.
		hi, lo := bits.Mul64(spare+1, uint64(l.window))
		inside, rest := bits.Div64(hi, lo, count)
		if rest == 0 {
			inside--
		}
		answer.RetryAfter = micros(uint64(end - int64(inside) - now))
	}
	current += answer.Granted
	if counted+answer.Granted > 0 {
		answer.ResetAfter = micros(uint64(finish - now))
	}
	answer.Window = index
	if current != current0 || previous != previous0 || back { // otherwise the state is unchanged
		m.exists, m.at, m.current, m.previous, m.wide = current+previous > 0, index, current, previous, 0
		if current > wide {
			m.wide = wide
		}
	}
	return answer
}

func (m *Model) slidingLog(l *Limit, now int64, a Ask) Answer {
	q := l.quota(a)
	for i, at := range m.log {
		m.log[i] = min(at, now)
	}
	gone, _ := slices.BinarySearch(m.log, now-l.window+1)
	first, last := max(gone, len(m.log)-int(a.Returned)), len(m.log) // entries that are given back
	if a.Window > AnyWindow {
		at, _ := slices.BinarySearch(m.log, a.Window)
		last, _ = slices.BinarySearch(m.log, a.Window+1)
		last = max(last, gone)
		first = max(gone, at, last-int(a.Returned))
	}
	isLess := first < last
	m.log = slices.Delete(m.log, first, last)
	count := uint64(len(m.log) - gone)
	debt := charged(count, a.Debt, l.terms.MaxDebt*q.Tokens) - count
	answer := decide(q, a, q.Tokens-min(count+debt, q.Tokens))
	added := answer.Granted + debt
	for range added {
		m.log = append(m.log, now)
	}
	if len(m.log) > gone {
		answer.ResetAfter = micros(uint64(m.log[gone] + l.window - now))
	}
	if answer.RetryAfter == unknown {
		answer.RetryAfter = micros(uint64(m.log[len(m.log)+int(a.Need)-int(q.Tokens)-1] + l.window - now))
	}
	if isLess || added > 0 && (count == 0 || uint64(gone) > 16+count/4) {
		m.log = slices.Delete(m.log, 0, gone) // entries that have left the window are forgotten
	}
	answer.Window = AnyWindow
	if answer.Granted > 0 {
		answer.Window = now
	}
	return answer
}

const unknown time.Duration = -1

func charged(owed, debt, maxDebt uint64) uint64 { return max(owed, min(owed+debt, maxDebt)) }

func decide(q Quota, a Ask, room uint64) Answer {
	switch {
	case a.Need > q.Tokens:
		return Answer{Remaining: room, RetryAfter: engine.Never}
	case room < a.Need:
		return Answer{Remaining: room, RetryAfter: unknown}
	}
	maxGrant := max(a.Need, room/4)
	if a.All {
		maxGrant = room
	}
	granted := min(a.Want, maxGrant, room)
	return Answer{Granted: granted, Remaining: room - granted}
}

func micros(n uint64) time.Duration { return time.Duration(n) * time.Microsecond }

func ceilDiv(a, b uint64) uint64 { return (a + b - 1) / b }

// scaled returns n*part/total, rounded down. The argument part must not exceed total.
func scaled(n uint64, part, total int64) uint64 {
	hi, lo := bits.Mul64(n, uint64(part))
	quotient, _ := bits.Div64(hi, lo, uint64(total))
	return quotient
}
