package serve

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func spreadRule(rate string) string {
	return "rules: [{name: default, key: global, spread: true, burst: 5, rate: " + rate + "}]\n"
}

// TestTheFormOfASpreadRule: the form of the page peeks at a spread bucket and resets it. This includes debts in
// previous limiters. The list of refused keys shows the bucket, too.
func TestTheFormOfASpreadRule(t *testing.T) {
	s := start(t, administered+spreadRule("1/m"))
	assert.NotContains(t, s.log.String(), "max_keys", "it has no table")
	assert.Equal(t, "200 200 200 200 200 429", s.statuses(6))
	remaining := func() (n struct{ Remaining uint64 }) {
		status, view := s.askAdmin("/key/peek", `{"rule":"default","parts":[]}`)
		require.Equal(t, 200, status, view)
		require.NoError(t, json.Unmarshal([]byte(view), &n))
		return n
	}
	assert.Zero(t, remaining().Remaining)
	_, state := s.askAdmin("/state.json")
	var shown struct {
		Refused struct{ Keys []struct{ Hash, Key string } }
	}
	require.NoError(t, json.Unmarshal([]byte(state), &shown))
	require.Len(t, shown.Refused.Keys, 1)
	status, view := s.askAdmin("/key/reset", `{"rule":"default","hash":"`+shown.Refused.Keys[0].Hash+`"}`)
	require.Equal(t, 200, status, view)
	assert.EqualValues(t, 5, remaining().Remaining)
	assert.Equal(t, "200 200", s.statuses(2))

	s.change(administered + "rules: [{name: default, key: global, burst: 5, rate: 1/m}]\n")
	s.change(administered + spreadRule("1/m"))
	assert.EqualValues(t, 3, remaining().Remaining, "before a request has come")
	assert.Equal(t, "200 200 200 429", s.statuses(4))
	_, metrics := s.askAdmin("/metrics")
	assert.Contains(t, metrics, `rule="default"`)
	assert.NotContains(t, metrics, `weir_table_slots{rule="default"}`, "it has no table")
}

// TestABadReloadOfASpreadRule: a failed reload undoes its changes to the bucket.
func TestABadReloadOfASpreadRule(t *testing.T) {
	s := start(t, spreadRule("1/m"))
	assert.Equal(t, "200 200", s.statuses(2))
	s.write("rules: [{name: default, key: global, spread: true, rate: 90/m, burst: 90}, " +
		"{name: b, rate: 4000/h, algorithm: sliding-log, max_keys: 2147483647}]")
	require.Error(t, s.Reload(), "there is not the memory")
	assert.Equal(t, "200 200 200 429", s.statuses(4))
}
