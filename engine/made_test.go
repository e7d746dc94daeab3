package engine

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// methods returns calls of a limiter's methods. The calls in quick have no helpful message for a nil limiter, because
// the check would cost too much time.
func methods(l *Limiter) (all, quick map[string]func()) {
	p, k := TokenBucket(PerSecond(1), 1), Key{}
	all = map[string]func(){
		"Peek": func() { l.Peek(k, 1) }, "Refund": func() { l.Refund(k, 1) },
		"Reserve":      func() { _, _, _ = l.Reserve(k, 1, 1) },
		"Queue":        func() { _, _, _ = l.Queue(k, 1, 1) },
		"Wait":         func() { _ = l.Wait(context.Background(), "k", 1) },
		"WaitKey":      func() { _ = l.WaitKey(context.Background(), k, 1) },
		"Reset":        func() { l.Reset(k) },
		"TakeBatch":    func() { _ = l.TakeBatch([]Key{k}, 1, make([]Decision, 1)) },
		"Algorithm":    func() { l.Algorithm() },
		"Quota":        func() { _, _ = l.Quota(p) },
		"a ban":        func() { _, _ = l.Quota(Blocked()) },
		"Owed":         func() { l.Owed(k) },
		"ParseReceipt": func() { _, _ = l.ParseReceipt(k, make([]byte, ReceiptBytes)) },
		"SetPolicy":    func() { _ = l.SetPolicy(p) }, "Policy": func() { l.Policy(0) },
		"Stats": func() { l.Stats() }, "Sweep": func() { l.Sweep() }, "Close": func() { _ = l.Close() },
	}
	quick = map[string]func(){
		"Allow": func() { l.Allow("k") }, "Take": func() { l.Take("k", 1) }, "Key": func() { l.Key("k") },
		"KeyBytes": func() { l.KeyBytes(nil) }, "KeyAddr": func() { l.KeyAddr(netip.Addr{}) },
		"KeyUint64": func() { l.KeyUint64(1) },
	}
	return all, quick
}

// TestALimiterThatNewDidNotMakeSaysSo: a limiter that New did not make panics with a message that names New.
func TestALimiterThatNewDidNotMakeSaysSo(t *testing.T) {
	for _, l := range []*Limiter{nil, {}} {
		slow, quick := methods(l)
		for name, call := range slow {
			assert.Contains(t, panicOf(call), "make it with engine.New", "%s of %v", name, l)
		}
		for name, call := range quick {
			if l != nil {
				assert.Contains(t, panicOf(call), "make it with engine.New", name)
			} else {
				assert.Contains(t, panicOf(call), "nil pointer", name)
			}
		}
		_, err := all(Request{Limiter: l})
		require.ErrorContains(t, err, "request 1 of 1 has no limiter that New made")
	}
}

// TestASpreadThatNewSpreadDidNotMakeSaysSo: a nil or zero Spread panics with a message that names NewSpread.
func TestASpreadThatNewSpreadDidNotMakeSaysSo(t *testing.T) {
	for _, s := range []*Spread{nil, {}} {
		for name, call := range map[string]func(){
			"Peek": func() { s.Peek(1) }, "Owed": func() { s.Owed() }, "Charge": func() { s.Charge(1) }, "Reset": func() { s.Reset() },
			"Policy": func() { s.Policy() }, "SetPolicy": func() { _ = s.SetPolicy(TokenBucket(PerSecond(1), 1)) },
			"Close": func() { _ = s.Close() },
		} {
			assert.Contains(t, panicOf(call), "make it with engine.NewSpread", "%s of %v", name, s)
		}
	}
}

func panicOf(call func()) (message string) {
	defer func() { message = fmt.Sprint(recover()) }()
	call()
	return
}
