package serve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type keyView struct {
	Hash             string
	Recorded         bool
	Limit, Remaining uint64
	RetryAfter       string `json:"retry_after"`
	Error            string
}

func (r *running) key(action, body string) (status int, view keyView) {
	r.t.Helper()
	status, text := r.askAdmin("/key/"+action, body)
	require.NoError(r.t, json.Unmarshal([]byte(text), &view), text)
	return status, view
}

type refusal struct {
	Key, Hash   string
	Least, Most uint64
	Rules       []struct{ Rule string }
}

func (r *running) refusals() (keys []refusal, all uint64) {
	r.t.Helper()
	_, text := r.askAdmin("/state.json")
	var state struct {
		Refused *struct {
			Keys []refusal
			All  uint64
		}
	}
	require.NoError(r.t, json.Unmarshal([]byte(text), &state))
	if state.Refused == nil {
		return nil, 0
	}
	return state.Refused.Keys, state.Refused.All
}

func byKey(store *miniredis.Miniredis, keys string) string {
	return "admin: {address: \"127.0.0.1:0\", keys: " + keys + "}\nstore: {url: \"redis://" + store.Addr() +
		"\", timeout: 2s}\nrules: [{name: api, rate: 1/h, burst: 3, key: header:X-API-Key}]\n"
}

// TestTheFormFindsAKeyInTheStore: on every machine, the form of the page peeks at a client's key in the store, and
// resets it.
func TestTheFormFindsAKeyInTheStore(t *testing.T) {
	store := miniredis.RunT(t)
	a, b := start(t, byKey(store, "full")), start(t, byKey(store, "full"))
	_, view := a.key("peek", `{"rule":"api","parts":["alice"]}`)
	assert.Equal(t, keyView{Hash: view.Hash, Limit: 3, Remaining: 3, RetryAfter: "now"}, view)
	assert.Equal(t, "200 200 200 429 429", a.statuses(5, "X-API-Key: alice"))
	keys, all := a.refusals()
	assert.EqualValues(t, 2, all)
	require.Len(t, keys, 1)
	assert.Equal(t, refusal{"X-Api-Key: alice", view.Hash, 2, 2, []struct{ Rule string }{{"api"}}}, keys[0])
	none, all := b.refusals()
	assert.Empty(t, none, "this node's")
	assert.Zero(t, all)

	_, byHash := a.key("peek", fmt.Sprintf(`{"rule":"api","hash":%q}`, view.Hash))
	assert.True(t, byHash.Recorded)
	assert.Zero(t, byHash.Remaining)
	assert.Contains(t, byHash.RetryAfter, " minutes")
	_, byParts := b.key("peek", `{"rule":"api","parts":["alice"]}`)
	assert.Zero(t, byParts.Remaining, "the other node sees the same")
	status, after := a.key("reset", fmt.Sprintf(`{"rule":"api","hash":%q}`, view.Hash))
	assert.Equal(t, 200, status)
	assert.Equal(t, keyView{Hash: view.Hash, Recorded: true, Limit: 3, Remaining: 3, RetryAfter: "now"}, after)
	assert.Equal(t, "200", b.statuses(1, "X-API-Key: alice"))

	store.Close()
	for _, action := range []string{"peek", "reset"} {
		status, failed := a.key(action, `{"rule":"api","parts":["alice"]}`)
		assert.Equal(t, 502, status)
		assert.Contains(t, failed.Error, "the store failed: ")
	}
}

func TestTheFormLooksAtALeasedKey(t *testing.T) {
	store := miniredis.RunT(t)
	store.SetTime(time.Unix(1_000_000_000, 0)) // the time stands still, so no tokens come back
	s := start(t, administered+"store: {url: \"redis://"+store.Addr()+"\", timeout: 2s}\n"+
		"rules: [{name: fast, rate: 1000/s, burst: 1000}]\n")
	_, state := s.askAdmin("/state.json")
	require.Contains(t, state, `"mode":"leased"`)
	s.statuses(20)
	require.Eventually(t, func() bool {
		_, view := s.key("peek", `{"rule":"fast","parts":["127.0.0.1"]}`)
		_, state := s.askAdmin("/state.json")
		return view.Recorded && view.Remaining == 980 && strings.Contains(state, `"leases":{"keys":0,`)
	}, 20*time.Second, time.Millisecond)
	_, view := s.key("reset", `{"rule":"fast","parts":["127.0.0.1"]}`)
	assert.True(t, view.Recorded)
	assert.EqualValues(t, 1000, view.Remaining)
}

// TestAListedKeyHasItsLimit: if a refused key has its limit from outside of the rule, the page shows this limit.
func TestAListedKeyHasItsLimit(t *testing.T) {
	store := miniredis.RunT(t)
	store.HSet("plans", "anna", "2/h", "berta", "0")
	for _, where := range []string{"true", "false"} {
		s := start(t, administered+"store: {url: \"redis://"+store.Addr()+"\", timeout: 2s}\n"+
			"rules: [{name: a, rate: 9/h, store: "+where+", key: header:X-Key, max_keys: 100, quota: {hash: plans}}]\n")
		for key, limit := range map[string]uint64{"anna": 2, "berta": 0} {
			s.statuses(4, "X-Key: "+key)
			_, typed := s.key("peek", fmt.Sprintf(`{"rule":"a","parts":[%q]}`, key))
			_, byHash := s.key("peek", fmt.Sprintf(`{"rule":"a","hash":%q}`, typed.Hash))
			assert.Equal(t, limit, typed.Limit, where)
			assert.Equal(t, typed.Limit, byHash.Limit, where)
			assert.Zero(t, byHash.Remaining, where)
		}
	}
}

// TestKeysInTheStoreAreShownAsConfigured: if keys are hashed or off, the page shows no text of a key. A key whose text
// is too long to store is not in the list.
func TestKeysInTheStoreAreShownAsConfigured(t *testing.T) {
	store := miniredis.RunT(t)
	s := start(t, byKey(store, "hashed"))
	long := strings.Repeat("x", 300)
	for _, key := range []string{"secret", long} {
		s.statuses(5, "X-API-Key: "+key)
	}
	keys, all := s.refusals()
	assert.EqualValues(t, 4, all)
	require.Len(t, keys, 2)
	hashes := map[string]bool{}
	for _, k := range keys {
		assert.Empty(t, k.Key)
		hashes[k.Hash] = true
	}
	for key, want := range map[string]string{"secret": "", long: "is longer than the 256 bytes that are kept"} {
		_, typed := s.key("peek", fmt.Sprintf(`{"rule":"api","parts":[%q]}`, key))
		assert.Zero(t, typed.Remaining)
		assert.True(t, hashes[typed.Hash], "a typed key has the hash by which it is listed")
		_, byHash := s.key("peek", fmt.Sprintf(`{"rule":"api","hash":%q}`, typed.Hash))
		assert.Contains(t, byHash.Error, want)
		assert.Equal(t, want == "", byHash.Recorded)
	}
	_, state := s.askAdmin("/state.json")
	assert.NotContains(t, state, "secret")

	s.change(byKey(store, "off"))
	s.statuses(1, "X-API-Key: secret")
	keys, all = s.refusals()
	assert.Nil(t, keys)
	assert.Zero(t, all)
}
