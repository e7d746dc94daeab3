package script

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
)

// A Model is what the server holds of one key, and decides as the scripts do, in Go and at any
// time: for simulation, and to check the scripts. The zero Model is that of a key that was never
// asked about. It must always be asked with the same limit, and by one goroutine at a time.
type Model struct {
	known             bool
	at                int64 // of a level; where a window starts; the index of a sliding window
	level             uint64
	count             uint64
	current, previous uint64
	log               []int64 // the oldest first
}

// Ask answers as [Limit.Run] would at a time of the server, in microseconds since 1970, which may go back.
// As there, Need is at most Want, or Want is 0.
func (m *Model) Ask(l *Limit, nowMicros int64, a Ask) Answer {
	a = l.bounded(a)
	answer := l.model(m, l, nowMicros, a)
	if l.terms.Refusals == engine.ChargeNothing || a.Want == 0 || a.Returned+a.Debt > 0 || answer.Granted > 0 || a.Need == 0 {
		return answer
	}
	a.Want, a.Debt = 0, a.Need // what a refused request costs is a debt
	if l.terms.Refusals == engine.ChargeTheRest {
		a.Debt = min(a.Need, answer.Remaining)
	}
	return l.model(m, l, nowMicros, a)
}

func (m *Model) bucket(l *Limit, now int64, a Ask) Answer {
	q := l.quota(a)
	den := q.Units
	full := q.Tokens * den
	level, back := m.level, m.known && now < m.at
	if m.known && !back {
		hi, paid := bits.Mul64(uint64(now-m.at), uint64(l.num))
		if hi > 0 {
			paid = math.MaxUint64
		}
		level -= min(paid, level)
	}
	before := level
	level -= min(a.Returned*den, level)
	level += min(a.Debt, (max(level, l.terms.MaxDebt*full)-level)/den) * den
	answer := decide(q, a, (full-min(level, full))/den)
	if answer.RetryAfter == unknown {
		answer.RetryAfter = micros(up(level+a.Need*den-full, uint64(l.num)))
	}
	level += answer.Granted * den
	answer.ResetAfter = micros(up(level, uint64(l.num)))
	if level != before || back { // else it stays as it was written, and pays back from then
		m.known, m.at, m.level = level > 0, now, level
	}
	return answer
}

func (m *Model) fixed(l *Limit, now int64, a Ask) Answer {
	q := l.quota(a)
	first, latest := now, now
	if l.aligned {
		first = now - now%l.window
		latest = first + l.window
	}
	m.at = min(m.at, latest)
	carry, over := uint64(0), int64(0)
	if ended := max(0, now-m.at) / l.window; m.known && ended > 0 { // what was beyond the limit counts in the next
		if paid, most := uint64(ended), m.count/l.widest; paid <= most && m.count > paid*l.widest {
			carry, over = m.count-paid*l.widest, m.at+(ended+1)*l.window
		}
	}
	live := m.known && now < m.at+l.window
	count := carry
	if live {
		count = m.count
		if a.Window == m.at || a.Window == AnyWindow {
			count -= min(a.Returned, count)
		}
	}
	count = charged(count, a.Debt, l.terms.MaxDebt*q.Tokens)
	answer := decide(q, a, q.Tokens-min(count, q.Tokens))
	if !live && answer.Granted+a.Debt > 0 {
		live, m.known, m.at = true, true, first
	}
	count += answer.Granted
	left := max(0, over-now)
	if live {
		m.count, answer.Window = count, m.at
		left = m.at + l.window - now
	}
	answer.ResetAfter = micros(uint64(left))
	if answer.RetryAfter == unknown {
		left += int64(up(count+a.Need-q.Tokens, l.widest)-1) * l.window
		answer.RetryAfter = micros(uint64(left))
	}
	return answer
}

func (m *Model) sliding(l *Limit, now int64, a Ask) Answer {
	q := l.quota(a)
	present := now / l.window
	back := m.known && m.at > present+1
	m.at = min(m.at, present+1)
	index, current, previous := present, uint64(0), uint64(0)
	switch {
	case m.known && m.at >= present:
		index, current, previous = m.at, m.current, m.previous
	case m.known: // what was taken beyond the limit counts in the windows after
		if ended := uint64(present - m.at - 1); ended <= m.current/l.widest {
			left := m.current - ended*l.widest
			previous, current = min(left, l.widest), left-min(left, l.widest)
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
			more := max(1, up(current+a.Need-q.Tokens, l.widest)) // windows that have to end
			over := current - min(current, more*l.widest)
			count, end, spare = min(l.widest, current-(more-1)*l.widest), finish+int64(more)*l.window, q.Tokens-a.Need-over
		}
		// The largest part of a window that counts for less than spare+1.
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
	if current != current0 || previous != previous0 || back { // else it stays as it was written
		m.known, m.at, m.current, m.previous = current+previous > 0, index, current, previous
	}
	return answer
}

func (m *Model) logged(l *Limit, now int64, a Ask) Answer {
	q := l.quota(a)
	for i, at := range m.log {
		m.log[i] = min(at, now)
	}
	gone, _ := slices.BinarySearch(m.log, now-l.window+1)
	inside := max(gone, len(m.log)-int(a.Returned))
	isLess := inside < len(m.log)
	m.log = m.log[:inside]
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
		m.log = slices.Delete(m.log, 0, gone) // what has left is forgotten
	}
	answer.Window = now
	return answer
}

// unknown is the RetryAfter of a refusal until it is computed.
const unknown time.Duration = -1

// charged returns what is owed after a debt, of which as much is charged as a key may owe.
func charged(owed, debt, most uint64) uint64 { return max(owed, min(owed+debt, most)) }

// decide grants of the room that there is under a quota.
func decide(q Quota, a Ask, room uint64) Answer {
	switch {
	case a.Need > q.Tokens:
		return Answer{Remaining: room, RetryAfter: engine.Never}
	case room < a.Need:
		return Answer{Remaining: room, RetryAfter: unknown}
	}
	granted := min(a.Want, max(a.Need, room/4), room)
	return Answer{Granted: granted, Remaining: room - granted}
}

func micros(n uint64) time.Duration { return time.Duration(n) * time.Microsecond }

// up returns a/b, rounded up.
func up(a, b uint64) uint64 { return (a + b - 1) / b }

// scaled returns n*part/whole, rounded down, for a part of the whole.
func scaled(n uint64, part, whole int64) uint64 {
	hi, lo := bits.Mul64(n, uint64(part))
	quotient, _ := bits.Div64(hi, lo, uint64(whole))
	return quotient
}
