package admin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// TestAKeyInFlight: the form shows no time at which a request in flight ends, because it is unknown.
func TestAKeyInFlight(t *testing.T) {
	l, err := engine.New(engine.Concurrency(2, time.Hour), engine.MaxKeys(100))
	require.NoError(t, err)
	defer l.Close()
	rule := Rule{Name: "slow", Limiter: l, Parts: []string{"ip"}, Buckets: Local(l, func(parts []string) engine.Key {
		return l.Key(parts[0])
	})}
	a := start(t, Config{Rules: func() []Rule { return []Rule{rule} }, Keys: KeysOff})
	peek := func() []any {
		status, got := post(t, a, "peek", `{"rule":"slow","parts":["192.0.2.1"]}`)
		require.Equal(t, 200, status)
		return []any{got["remaining"], got["retry_after"], got["reset_after"], got["allowed"]}
	}
	assert.Equal(t, []any{2., "now", "now", true}, peek())
	_, one := l.TakeReceipt(l.Key("192.0.2.1"), 1)
	assert.Equal(t, []any{1., "now", "when all of them are over", true}, peek())
	_, two := l.TakeReceipt(l.Key("192.0.2.1"), 1)
	assert.Equal(t, []any{0., "when one of them is over", "when all of them are over", false}, peek())
	one.Release()
	two.Release()
	assert.Equal(t, []any{2., "now", "now", true}, peek())
}
