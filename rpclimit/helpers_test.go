package rpclimit_test

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/leakcheck"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/rpclimit"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

func newLimits(t testing.TB, set []rpclimit.Limit, options ...rpclimit.Option) *rpclimit.Limits {
	t.Helper()
	l, err := rpclimit.New(set, options...)
	require.NoError(t, err)
	return l
}

// one returns limits with one limit.
func one(t testing.TB, l rpclimit.Limit, options ...rpclimit.Option) *rpclimit.Limits {
	t.Helper()
	if l.Name == "" {
		l.Name = "default"
	}
	return newLimits(t, []rpclimit.Limit{l}, options...)
}

// metadata is the metadata of a call.
type metadata map[string][]string

func (m metadata) Values(_ context.Context, name string) ([]string, bool) { return m[name], true }

// The function from returns a call from an address, with metadata.
func from(peer string, pairs ...string) rpclimit.Call {
	m := metadata{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = append(m[pairs[i]], pairs[i+1])
	}
	c := rpclimit.Call{Context: context.Background(), Method: "/test.Service/Get", Metadata: m}
	if peer != "" {
		c.Peer = netip.MustParseAddr(peer)
	}
	return c
}

// codes decides on a call n times, and returns the codes.
func codes(l *rpclimit.Limits, n int, c rpclimit.Call) (got []rpclimit.Code) {
	for range n {
		res := l.Decide(c)
		got = append(got, res.Code())
	}
	return got
}

const ok, refused = rpclimit.OK, rpclimit.ResourceExhausted

// counts implements limits.Metrics and counts outcomes.
type counts struct{ seen [16]atomic.Int64 }

func (c *counts) Observe(_ string, o limits.Outcome) { c.seen[o].Add(1) }

func (c *counts) of(o limits.Outcome) int { return int(c.seen[o].Load()) }

// same reports whether two calls have the same key.
func same(t testing.TB, key rpclimit.KeyFunc, a, b rpclimit.Call) bool {
	t.Helper()
	h := limits.HasherOf(testclock.New().Burst(t, 1))
	first, limited := key(h, a)
	require.True(t, limited)
	second, limited := key(h, b)
	require.True(t, limited)
	return first == second
}
