package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const administered = "admin: {address: \"127.0.0.1:0\", keys: full}\n"

// askAdmin sends a request to the administrator's listener. It is a POST if there is a body, and a GET otherwise.
func (r *running) askAdmin(path string, body ...string) (int, string) {
	r.t.Helper()
	return r.askAdminAs("", path, body...)
}

func (r *running) askAdminAs(token, path string, body ...string) (int, string) {
	r.t.Helper()
	method, reader := http.MethodGet, io.Reader(nil)
	if len(body) > 0 {
		method, reader = http.MethodPost, strings.NewReader(body[0])
	}
	req, err := http.NewRequest(method, strings.TrimSuffix(r.urlOf(administrators), "/")+path, reader)
	require.NoError(r.t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", strings.TrimSuffix(r.urlOf(administrators), "/"))
	resp, err := r.client.Do(req)
	require.NoError(r.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return resp.StatusCode, string(text)
}

func TestTheAdministratorsPagesAreNeverPublic(t *testing.T) {
	s := start(t, administered+one)
	for _, path := range []string{"/metrics", "/readyz", "/state.json", "/debug/pprof/"} {
		assert.Contains(t, s.get(path).body+"admitted by weir", "admitted by weir", path)
		assert.NotContains(t, s.get(path).body, "weir_", path)
	}
	status, metrics := s.askAdmin("/metrics")
	assert.Equal(t, 200, status)
	assert.Contains(t, metrics, `rule="default"`)
}

func TestCountersOutliveAReload(t *testing.T) {
	s := start(t, administered+one)
	s.statuses(7)
	counted := func() string {
		_, metrics := s.askAdmin("/metrics")
		var lines []string
		for line := range strings.Lines(metrics) {
			if strings.HasPrefix(line, "weir_") && (strings.Contains(line, `"allowed"`) || strings.Contains(line, `"refused"`)) {
				lines = append(lines, line[strings.LastIndexByte(line, ' '):])
			}
		}
		return strings.Join(lines, "")
	}
	before := counted()
	assert.Contains(t, before, " 5\n")
	assert.Contains(t, before, " 2\n")
	old := s.urlOf(administrators)
	s.change("headers: both\nadmin: {address: \"localhost:0\", keys: full}\n" + one)
	assert.NotEqual(t, old, s.urlOf(administrators))
	s.client.CloseIdleConnections() // the connections end when the old server has noticed that they are idle
	_, err := s.client.Get(old)
	assert.Error(t, err)
	assert.Equal(t, before, counted())
}

// TestTheFormFindsAClientsBucket: the form of the page peeks at, and resets, the bucket of a client.
func TestTheFormFindsAClientsBucket(t *testing.T) {
	s := start(t, administered+one)
	assert.Equal(t, "200 200 200 200 200 429", s.statuses(6))
	status, view := s.askAdmin("/key/peek", `{"rule":"default","parts":["127.0.0.1"]}`)
	require.Equal(t, 200, status, view)
	var seen struct {
		Remaining uint64
		Recorded  bool
	}
	require.NoError(t, json.NewDecoder(bytes.NewBufferString(view)).Decode(&seen))
	assert.True(t, seen.Recorded)
	assert.Zero(t, seen.Remaining)
	status, _ = s.askAdmin("/key/reset", `{"rule":"default","parts":["127.0.0.1"]}`)
	require.Equal(t, 200, status)
	assert.Equal(t, "200 200 200 200 200 429", s.statuses(6))
}

// TestTheFormOfRulesThatCountNothing: a key of a rule that refuses all requests, or admits all, has no bucket.
func TestTheFormOfRulesThatCountNothing(t *testing.T) {
	s := start(t, administered+`rules:
  - {name: closed, match: {path: /old/}, rate: 0}
  - {name: open, match: {path: /new/}, rate: unlimited}
  - {name: plans, key: header:X-Key, rate: 0, tiers: {header: X-Plan, values: {paid: {rate: 5/s}}}}
`)
	for rule, want := range map[string]string{
		"closed": `"limit":0,"remaining":0,"retry_after":"never"`,
		"open":   `"limit":18446744073709551615,"remaining":18446744073709551615,"retry_after":"now"`,
		"plans":  `"limit":0,"remaining":0,"retry_after":"never"`,
	} {
		status, view := s.askAdmin("/key/peek", `{"rule":"`+rule+`","parts":["127.0.0.1"]}`)
		require.Equal(t, 200, status, view)
		assert.Contains(t, view, want)
		assert.Contains(t, view, fmt.Sprintf(`"allowed":%t`, rule == "open"))
	}
}

func TestTheAdministratorSeesABadReload(t *testing.T) {
	s := start(t, administered+one)
	s.write("rules: none")
	require.Error(t, s.Reload())
	_, state := s.askAdmin("/state.json")
	assert.Contains(t, state, "want a mapping")
	s.change(administered + one)
	_, state = s.askAdmin("/state.json")
	assert.NotContains(t, state, "want a mapping")
}

func TestAnAdministratorsListenerThatGoesAway(t *testing.T) {
	s := start(t, administered+one)
	events, err := s.client.Get(s.urlOf(administrators) + "events")
	require.NoError(t, err)
	defer events.Body.Close()
	require.Equal(t, 200, events.StatusCode)
	s.change(one)
	_, err = io.Copy(io.Discard, events.Body)
	assert.NoError(t, err, "its event streams end")
	assert.Empty(t, s.urlOf(administrators))
	assert.Equal(t, "200", s.statuses(1))
}

// TestTokensAreReadAgain: a reload reads the tokens again and keeps the counters. A bad token file changes nothing.
func TestTokensAreReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("first-token-of-all")
	rules := "admin: {address: \"127.0.0.1:0\", token_file: " + file + "}\n" + one
	s := start(t, rules)
	assert.Contains(t, filesOf(s.current.Load().file), file, "it is watched")
	metrics := func(token string) (int, string) { return s.askAdminAs(token, "/metrics") }
	status, _ := s.askAdmin("/metrics")
	assert.Equal(t, 401, status)
	s.statuses(3)
	write("second-token-of-all")
	require.NoError(t, s.Reload())
	status, _ = metrics("first-token-of-all")
	assert.Equal(t, 401, status)
	status, text := metrics("second-token-of-all")
	assert.Equal(t, 200, status)
	assert.Contains(t, text, `weir_requests_total{outcome="allowed",rule="default"} 3`)

	write("short")
	require.ErrorContains(t, s.Reload(), "token 1: 5 characters: want at least 16")
	status, _ = metrics("second-token-of-all")
	assert.Equal(t, 200, status)
	s.change(administered + one)
	status, _ = s.askAdmin("/metrics")
	assert.Equal(t, 200, status, "no token is wanted any more")
}
