package limitertest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// keys checks that different keys share no tokens. The clock stands still.
func (s *suite) keys(t *testing.T) {
	l := s.slowestLimit()
	if s.nearEdge(l) {
		t.Skip("an aligned window is about to end")
	}
	names := s.names()
	s.program(t, l, early|late, func(p *program) {
		// If possible, one request takes all tokens of a key. If another key shares tokens with this key, the other
		// key's request is then refused.
		cost := s.maxCost(l)
		for round := range l.Capacity(s.Promise)/uint64(cost) + 1 {
			for i, name := range names {
				if round > 1 && i > 200 { // most keys are used only in the first rounds
					break
				}
				if _, ok := p.take(name, cost); !ok {
					return
				}
			}
		}
	})
}

// names returns the keys: unusual keys, long keys that differ in one byte, consecutive numbers, and random bytes.
func (s *suite) names() (names []string) {
	random := s.random(2)
	names = append(names, "", " ", "a", "A", "a ", " a", "a\x00", "a\x00b", "\x00", "a/", "a.", "a:", "0", "00", "é", "e\u0301", "\xff", "\xfe",
		"a:b", "a/b", "a|b", "a,b", "192.0.2.1", "192.0.2.10", "192.0.2.1:80", "::1", "0::1", "[::1]")
	for position := range 16 {
		for _, digit := range []string{"0", "1"} {
			text := strings.Repeat("x", 4095)
			names = append(names, text[:position*4095/15]+digit+text[position*4095/15:])
		}
	}
	for i := 0; len(names) < s.Keys/2; i++ {
		names = append(names, fmt.Sprintf("user-%d", i))
	}
	bytes := make([]byte, 16)
	for len(names) < s.Keys {
		for i := range bytes {
			bytes[i] = byte(random.Uint32())
		}
		names = append(names, string(bytes))
	}
	return names[:s.Keys]
}

// forget checks that a drained key gets only tokens that have come back since it was drained. It makes no difference
// how long the key was unused, and how many other keys were used meanwhile.
func (s *suite) forget(t *testing.T) {
	l := s.slowestLimit()
	for _, pause := range pauses {
		s.program(t, l, early, func(p *program) {
			if p.drain("k") && p.sleep(pause) {
				p.drain("k")
			}
		})
		if t.Failed() {
			return
		}
	}
	// The program drains only four keys, so that the shortest program that fails has few steps.
	s.program(t, l, early, func(p *program) {
		drained := []string{"k1", "k2", "k3", "k4"}
		for _, key := range drained {
			if !p.drain(key) {
				return
			}
		}
		for i := range 3 * s.Keys {
			if _, ok := p.take(fmt.Sprintf("other-%d", i), 1); !ok {
				return
			}
		}
		p.sleep(time.Millisecond)
		for _, key := range drained {
			if !p.drain(key) {
				return
			}
		}
	})
}
