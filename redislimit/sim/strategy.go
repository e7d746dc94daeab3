package sim

import (
	"fmt"
	"strings"
	"time"
)

// A Strategy is a way to enforce a limit that many machines share.
type Strategy struct {
	kind     kind
	interval time.Duration
}

type kind uint8

const (
	kindStrict kind = iota + 1
	kindLease
	kindSettle
)

// Strict asks the store about every request.
func Strict() Strategy { return Strategy{kind: kindStrict} }

// Lease spends tokens that the store has charged in advance. It runs the same code as a real node.
func Lease() Strategy { return Strategy{kind: kindLease} }

// SettleLater counts on the node, in windows of the period of the rate, as gateways do. A node decides by the last
// total of all nodes that the store reported, plus its own count since then. Once per interval (1 ms to 1 min), it
// reports this count to the store.
func SettleLater(interval time.Duration) Strategy { return Strategy{kindSettle, interval} }

// Strategies returns the default strategies of a report.
func Strategies() []Strategy {
	return []Strategy{
		Strict(), Lease(),
		SettleLater(200 * time.Millisecond), SettleLater(50 * time.Millisecond), SettleLater(10 * time.Millisecond),
	}
}

// ParseStrategy reads the name of a strategy: strict, lease, or settle-later with its interval, as in
// settle-later-200ms.
func ParseStrategy(name string) (Strategy, error) {
	for _, s := range []Strategy{Strict(), Lease()} {
		if name == s.String() {
			return s, nil
		}
	}
	if len(name) > len(settlePrefix) && name[:len(settlePrefix)] == settlePrefix {
		if interval, err := time.ParseDuration(name[len(settlePrefix):]); err == nil {
			s := SettleLater(interval)
			return s, s.check()
		}
	}
	return Strategy{}, fmt.Errorf("sim: strategy %q: want strict, lease, or settle-later with an interval, such as settle-later-200ms", name)
}

const settlePrefix = "settle-later-"

// String returns the name that [ParseStrategy] reads.
func (s Strategy) String() string {
	switch s.kind {
	case kindStrict:
		return "strict"
	case kindLease:
		return "lease"
	case kindSettle:
		return settlePrefix + s.interval.String()
	}
	return "none"
}

// Title returns the name of the strategy in reports for people.
func (s Strategy) Title() string {
	switch s.kind {
	case kindLease:
		return "leased"
	case kindSettle:
		// time.Duration has no space before the unit, and writes the longest interval, 60 s, as 1m0s.
		text := strings.Replace(s.interval.String(), "1m0s", "60s", 1)
		digits := strings.LastIndexAny(text, "0123456789") + 1
		return "settling later every " + text[:digits] + " " + text[digits:]
	}
	return s.String()
}

func (s Strategy) check() error {
	switch {
	case s.kind == 0:
		return fmt.Errorf("sim: a Strategy without a kind: want Strict, Lease or SettleLater")
	case s.kind == kindSettle && (s.interval < time.Millisecond || s.interval > time.Minute):
		return fmt.Errorf("sim: settle-later every %v: want 1ms to 1m", s.interval)
	}
	return nil
}
