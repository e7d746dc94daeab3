package admin

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// byAddress returns a middleware that limits each address to three requests per minute, and its Admin.
func byAddress(t *testing.T, keys Keys) (a *Admin, m *httplimit.Middleware) {
	now := time.Unix(1e9, 0)
	l, err := engine.New(engine.TokenBucket(engine.Per(3, time.Minute), 3), engine.MaxKeys(100),
		engine.ClockFunc(func() time.Time { return now }))
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	rule := Rule{Name: "login", Limiter: l, Parts: []string{"ip"}, Buckets: Local(l, func(parts []string) engine.Key {
		return l.KeyAddr(netip.MustParseAddr(parts[0]))
	})}
	a = start(t, Config{Rules: func() []Rule { return []Rule{rule, {Name: "elsewhere"}} }, Keys: keys})
	m, err = httplimit.New([]httplimit.Limit{{Name: "login", Limiter: l}}, httplimit.ObserveWith(a),
		httplimit.OnLimited(a.Limited))
	require.NoError(t, err)
	return a, m
}

func refuse(m *httplimit.Middleware, times int) {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "192.0.2.1:1"
	for range times {
		result := m.Decide(r)
		result.Refuse(httptest.NewRecorder(), r)
	}
}

// post sends a request of the form, and returns the status and the decoded answer.
func post(t *testing.T, a *Admin, action, body string) (status int, got map[string]any) {
	w := request(a, "POST", "http://localhost/key/"+action, body, "Content-Type: application/json; charset=utf-8")
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got), w.Body.String())
	return w.Code, got
}

func TestPeekAndReset(t *testing.T) {
	a, m := byAddress(t, KeysOff)
	const form = `{"rule":"login","parts":["192.0.2.1"]}`
	view := func(recorded bool, remaining float64, retry, reset string, allowed bool) map[string]any {
		return map[string]any{"rule": "login", "recorded": recorded, "limit": 3.0, "remaining": remaining,
			"retry_after": retry, "reset_after": reset, "allowed": allowed}
	}
	for _, step := range []struct {
		refused int
		action  string
		want    map[string]any
	}{
		{0, "peek", view(false, 3, "now", "now", true)},
		{0, "reset", view(false, 3, "now", "now", true)},
		{2, "peek", view(true, 1, "now", "in 40.0 seconds", true)},
		{2, "peek", view(true, 0, "in 20.0 seconds", "in 60.0 seconds", false)},
		{0, "reset", view(true, 3, "now", "now", true)},
		{0, "peek", view(false, 3, "now", "now", true)},
	} {
		refuse(m, step.refused)
		status, got := post(t, a, step.action, form)
		assert.Equal(t, 200, status)
		assert.Equal(t, step.want, got)
	}
}

func TestTheFormSaysWhatIsWrong(t *testing.T) {
	a, _ := byAddress(t, KeysHashed)
	for body, want := range map[string]string{
		``:                                           "the body is not the JSON of this request: EOF",
		`{"rule":1}`:                                 "cannot unmarshal number",
		`{"rule":"login"}x`:                          "the body is not the JSON of this request: text after its JSON",
		`{"rule":"login"} {}`:                        "the body is not the JSON of this request: text after its JSON",
		`{"rule":"login","tier":3}`:                  `unknown field "tier"`,
		`{"rule":"<b>","parts":[]}`:                  `there is no rule "<b>"`,
		`{"rule":"elsewhere","parts":[]}`:            `rule "elsewhere" cannot be looked at`,
		`{"rule":"login"}`:                           "keys of 1 parts: 0 were given",
		`{"rule":"login","parts":["1","2"]}`:         "keys of 1 parts: 2 were given",
		`{"rule":"login","parts":["192.0.2.1/24"]}`:  `"192.0.2.1/24" is not an IP address`,
		`{"rule":"login","hash":"zz"}`:               `the hash is "zz": want 16 hexadecimal digits`,
		`{"rule":"login","hash":"0123456789abcdef"}`: "key 0123456789abcdef is not watched",
	} {
		status, got := post(t, a, "peek", body)
		assert.Contains(t, []int{400, 422}, status, body)
		assert.Contains(t, got["error"], want)
	}
}

// TestNothingStandsBehindARequest: text after the JSON of a request is an error, not ignored.
func TestNothingStandsBehindARequest(t *testing.T) {
	a, m := byAddress(t, KeysOff)
	refuse(m, 3)
	const form, client = `{"rule":"login","parts":["192.0.2.1"]}`, `{"address":"192.0.2.1"}`
	for path, body := range map[string]string{"/key/peek": form, "/key/reset": form, "/client/peek": client} {
		for behind, want := range map[string]int{"": 200, " \n\t": 200, "x": 400, " {}": 400, "]": 400, "\x00": 400, body: 400,
			strings.Repeat(" ", maxForm): 413} {
			if want == 200 && path == "/key/reset" {
				continue
			}
			w := request(a, "POST", "http://localhost"+path, body+behind, "Content-Type: application/json")
			assert.Equal(t, want, w.Code, "%s %.20q", path, behind)
			if want == 400 {
				assert.JSONEq(t, `{"error":"the body is not the JSON of this request: text after its JSON"}`, w.Body.String())
			}
		}
	}
	status, got := post(t, a, "peek", form)
	assert.Equal(t, 200, status)
	assert.Equal(t, 0.0, got["remaining"], "nothing was reset")
}

// TestRefusedKeysAsConfigured: refused keys are shown in full, hashed, or not at all. A key's hash can be used for a
// peek.
func TestRefusedKeysAsConfigured(t *testing.T) {
	for keys, shown := range map[Keys]string{KeysFull: "ip:192.0.2.1", KeysHashed: ""} {
		a, m := byAddress(t, keys)
		refuse(m, 5)
		top := a.state(time.Now()).Refused
		require.NotNil(t, top)
		require.Len(t, top.Keys, 1)
		k := top.Keys[0]
		assert.Equal(t, topKey{Key: shown, Hash: k.Hash, Lower: 2, Upper: 2, Rules: []topRule{{"login", 2}}}, k)
		assert.Equal(t, uint64(2), top.All)
		_, byHash := post(t, a, "peek", fmt.Sprintf(`{"rule":"login","hash":%q}`, k.Hash))
		_, byParts := post(t, a, "peek", `{"rule":"login","parts":["192.0.2.1"]}`)
		assert.Equal(t, 0.0, byHash["remaining"])
		assert.Equal(t, byHash, byParts, "a typed key has the hash by which it is listed")
		if keys == KeysHashed {
			assert.NotContains(t, get(a, "/state.json").Body.String(), "192.0.2.1")
		}
	}
	a, m := byAddress(t, KeysOff)
	refuse(m, 5)
	assert.Nil(t, a.state(time.Now()).Refused)
	_, all := a.refusals.top(topKeys)
	assert.Zero(t, all, "none is kept")
}

func TestTimesInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "now", 1: "in a millisecond", 1500 * time.Microsecond: "in 2 milliseconds",
		999 * time.Millisecond: "in 999 milliseconds",
		time.Second:            "in 1.0 seconds", 1001 * time.Millisecond: "in 1.1 seconds", time.Minute: "in 60.0 seconds",
		61 * time.Second: "in 1 minute 1 second", 2*time.Minute + 1: "in 2 minutes 1 second", 3 * time.Hour: "in 3 hours",
		25 * time.Hour: "in 1 day 1 hour", engine.Never: "never", math.MaxInt64 - 1: "in 106752 days",
	} {
		assert.Equal(t, want, inWords(d))
	}
}

// TestNoReset: with NoReset, callers can peek but not reset.
func TestNoReset(t *testing.T) {
	l := limiter(t, engine.TokenBucket(engine.Per(1, time.Hour), 3))
	rule := Rule{Name: "login", Limiter: l, Parts: []string{"user"},
		Buckets: Local(l, func(parts []string) engine.Key { return l.Key(parts[0]) })}
	a := start(t, Config{Rules: func() []Rule { return []Rule{rule} }, NoReset: true})
	l.Take("bob", 2)
	status, got := post(t, a, "reset", `{"rule":"login","parts":["bob"]}`)
	assert.Equal(t, 403, status)
	assert.Contains(t, got["error"], "keys cannot be reset here")
	status, got = post(t, a, "peek", `{"rule":"login","parts":["bob"]}`)
	assert.Equal(t, 200, status)
	assert.Equal(t, 1.0, got["remaining"])
	assert.False(t, a.state(time.Now()).Reset)
}

// TestSharedTables: a table that several rules share is shown once.
func TestSharedTables(t *testing.T) {
	l := limiter(t, engine.FixedWindow(3, time.Hour))
	a := start(t, Config{
		Rules:  func() []Rule { return []Rule{{Name: "a"}, {Name: "b"}} },
		Tables: func() []Table { return []Table{{"windows of an hour", l.Stats()}} },
	})
	s := a.state(time.Now())
	require.Len(t, s.Tables, 1)
	assert.Equal(t, "windows of an hour", s.Tables[0].Name)
	assert.Equal(t, l.Stats().Slots, s.Tables[0].Slots)
	assert.Nil(t, s.Rules[0].Table)
	assert.Equal(t, "weir", s.Program)
}
