package script

import (
	"cmp"
	"fmt"
	"slices"
)

func (m *Model) inFlight(l *Limit, now int64, a Ask) Answer {
	q := l.quota(a)
	m.places = slices.DeleteFunc(m.places, func(p place) bool { return p.until <= now })
	if a.Window == AnyWindow {
		m.places = slices.Delete(m.places, 0, min(int(a.Returned), len(m.places)))
	} else {
		m.places = slices.DeleteFunc(m.places, func(p place) bool { return p.id == a.Window && p.i <= a.Returned })
	}
	if a.Want+a.Debt > 0 {
		late := 0
		for i, p := range m.places {
			if p.until > now+l.window && late < 16 {
				m.places[i].until = now + l.window
				late++
			}
		}
		m.sort()
	}
	id := int64(AnyWindow)
	if a.Debt > 0 && a.Window > AnyWindow {
		id = a.Window
		m.setPlaces(id, a.Debt, now+l.window)
	} else if a.Debt > 0 {
		id = m.add(a.Debt, now, l.window)
	}
	count := uint64(len(m.places))
	answer := decide(q, a, q.Tokens-min(count, q.Tokens))
	if answer.RetryAfter == unknown {
		answer.RetryAfter = micros(uint64(l.window))
		if at := count + a.Need - q.Tokens - 1; at < count {
			answer.RetryAfter = micros(uint64(max(1, m.places[at].until-now)))
		}
	}
	if answer.Granted > 0 {
		id = m.add(answer.Granted, now, l.window)
	}
	if len(m.places) > 0 {
		answer.ResetAfter = micros(uint64(l.window))
	}
	answer.Window = id
	return answer
}

func (m *Model) add(n uint64, now, life int64) (id int64) {
	for id = now; slices.ContainsFunc(m.places, func(p place) bool { return p.id == id && p.i == 1 }); id++ {
	}
	m.setPlaces(id, n, now+life)
	return id
}

func (m *Model) setPlaces(id int64, n uint64, until int64) {
	m.places = slices.DeleteFunc(m.places, func(p place) bool { return p.id == id && p.i <= n })
	for i := range n {
		m.places = append(m.places, place{id, i + 1, until})
	}
	m.sort()
}

func (m *Model) sort() {
	slices.SortFunc(m.places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.name(), b.name()))
	})
}

type place struct {
	id    int64
	i     uint64
	until int64
}

func (p place) name() string {
	if p.i > 1 {
		return fmt.Sprintf("%08d:%d", p.id, p.i)
	}
	return fmt.Sprintf("%08d", p.id)
}
