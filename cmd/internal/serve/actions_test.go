package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir/cmd/internal/actions"
)

// The constant behind is a part of a rule file. With it, weir trusts X-Forwarded-For, so that a test can send requests
// as several clients.
const behind = "admin: {address: \"127.0.0.1:0\", keys: full}\ntrusted_proxies: 127.0.0.1\n"

func (r *running) act(want int, kind, target string) string {
	r.t.Helper()
	status, body := r.askAdmin("/actions", fmt.Sprintf(`{"kind":%q,%s,"for":"1h","who":"alice","why":"a test"}`, kind, target))
	require.Equal(r.t, want, status, body)
	return body
}

func from(addr string) string { return "X-Forwarded-For: " + addr }

// TestABanOfAnHour: a ban refuses only its address, and ends after an hour of the server's clock.
func TestABanOfAnHour(t *testing.T) {
	s := start(t, behind+one)
	s.act(200, "ban", `"network":"192.0.2.7"`)
	got, h := s.ask("/", from("192.0.2.7"))
	assert.Equal(t, answer{403, "", "application/problem+json",
		`{"type":"about:blank","title":"Forbidden","status":403,"detail":"Requests of this client are refused for a time"}` + "\n"}, got)
	assert.Equal(t, "no-store", h.Get("Cache-Control"))
	assert.Empty(t, h.Get("RateLimit"))
	assert.Equal(t, "200 200 200 200 200 429", s.statuses(6, from("192.0.2.8")))
	assert.Equal(t, "403", s.statuses(1, from("::ffff:192.0.2.7")), "mapped into IPv6 it is the same address")
	assert.Equal(t, "403", s.statuses(1, from("10.0.0.1, 192.0.2.7")), "what the client wrote itself")
	s.clock.advance(time.Hour - 1)
	assert.Equal(t, "403", s.statuses(1, from("192.0.2.7")))
	s.clock.advance(1)
	assert.Equal(t, "200 200 200 200 200 429", s.statuses(6, from("192.0.2.7")), "the ban took nothing")
	_, metrics := s.askAdmin("/metrics")
	assert.Contains(t, metrics, `weir_action_hits_total{kind="ban"} 4`)
	assert.Contains(t, metrics, `weir_actions{kind="ban"} 0`)
	assert.Contains(t, metrics, `weir_http_requests_total{by="limits",code="403"} 4`)
	assert.Len(t, s.log.With(`msg="action: begins" id=1 what="ban of the network 192.0.2.7/32"`), 1)
}

// TestAHeaderExemptsNobody: actions apply to the address of the connection. A header with another address counts only
// if it comes from a trusted proxy.
func TestAHeaderExemptsNobody(t *testing.T) {
	s := start(t, administered+one)
	s.act(200, "exempt", `"network":"198.51.100.0/24"`)
	s.act(200, "shadow", `"network":"2001:db8::/32"`)
	assert.Equal(t, "200 200 200 200 200 429", s.statuses(6, from("198.51.100.1"), "Forwarded: for=198.51.100.1", "X-Real-IP: 198.51.100.1"))
	assert.Equal(t, "429", s.statuses(1, from("2001:db8::1")))
	s.act(200, "exempt", `"network":"127.0.0.1"`)
	got, h := s.ask("/", from("192.0.2.1"))
	assert.Equal(t, 200, got.status)
	assert.Empty(t, h.Get("RateLimit"), "no rule is applied")
}

// TestShadowOfANetwork: rules count the requests of clients in a network in shadow mode, but refuse none of them.
func TestShadowOfANetwork(t *testing.T) {
	s := start(t, behind+one)
	s.act(200, "shadow", `"network":"192.0.2.0/24"`)
	assert.Equal(t, "200 200 200 200 200 200 200", s.statuses(7, from("192.0.2.7")))
	_, metrics := s.askAdmin("/metrics")
	assert.Contains(t, metrics, `weir_requests_total{outcome="shadow_refused",rule="default"} 2`)
	s.clock.advance(time.Hour)
	assert.Equal(t, "200 429", s.statuses(2, from("192.0.2.7")), "one has come back in the hour")
}

// TestAKeyOfARule: an operator can type the key for an action, or choose a refused key. Both work for each way in which
// the page shows keys. The action outlives a reload.
func TestAKeyOfARule(t *testing.T) {
	for _, keys := range []string{"full", "hashed", "off"} {
		t.Run(keys, func(t *testing.T) {
			file := "trusted_proxies: 127.0.0.1\nadmin: {address: \"127.0.0.1:0\", keys: \"" + keys + "\"}\n" +
				"rules: [{name: default, rate: 1/h, burst: 1}, {name: users, key: \"header:X-User or none\", rate: 1/h, burst: 1}]\n"
			s := start(t, file)
			s.act(200, "ban", `"rule":"default","parts":["2001:db8::1"]`)
			assert.Equal(t, "403", s.statuses(1, from("2001:db8::ffff:2")), "another address of the /64")
			assert.Equal(t, "200", s.statuses(1, from("2001:db8:0:1::1")))
			s.act(200, "exempt", `"rule":"users","parts":["bob"]`)
			assert.Equal(t, "200", s.statuses(1, from("192.0.2.1"), "X-User: bob"))
			assert.Equal(t, "429", s.statuses(1, from("192.0.2.1"), "X-User: bob"), "the other rule is applied")
			assert.Equal(t, "200", s.statuses(1, from("192.0.2.2"), "X-User: bob"))
			if keys != "off" {
				_, text := s.askAdmin("/state.json")
				var state struct {
					Refused struct{ Keys []struct{ Hash string } }
				}
				require.NoError(t, json.Unmarshal([]byte(text), &state))
				require.Len(t, state.Refused.Keys, 1)
				s.act(200, "ban", fmt.Sprintf(`"rule":"default","hash":%q`, state.Refused.Keys[0].Hash))
				assert.Equal(t, "403", s.statuses(1, from("192.0.2.1")), "the one that was refused")
				assert.Equal(t, "403", s.statuses(1, from("2001:db8::1")))
			}
			_, list := s.askAdmin("/actions.json")
			assert.Equal(t, keys == "full", strings.Contains(list, `"key":"ip:2001:db8::"`), list)
			assert.Equal(t, keys == "full", strings.Contains(list, "bob"), list)
			s.change(strings.Replace(file, `keys: "`+keys, `keys: "hashed`, 1) + "headers: both\n")
			assert.Equal(t, "403", s.statuses(1, from("2001:db8::1")))
			_, list = s.askAdmin("/actions.json")
			assert.NotContains(t, list, "bob")
			s.change(strings.Replace(file, "header:X-User or none", "cookie:X-User or none", 1))
			assert.Equal(t, "429", s.statuses(1, from("192.0.2.2"), "Cookie: X-User=bob"), "the rule has other keys now")
			_, list = s.askAdmin("/actions.json")
			assert.Contains(t, list, `"applies":false`)
		})
	}
}

// TestABannedRule: a ban of a rule refuses every request that the rule matches. So the operator must confirm it.
func TestABannedRule(t *testing.T) {
	s := start(t, behind+"rules: [{name: a, match: {path: /a}, rate: unlimited}, {name: b, rate: 1/h, burst: 100}]\n")
	body := s.act(409, "ban", `"rule":"a"`)
	assert.Contains(t, body, "every request that the rule a applies to is refused: confirm it")
	assert.Equal(t, 200, s.get("/a").status)
	s.act(200, "ban", `"rule":"a","confirm":true`)
	assert.Equal(t, 403, s.get("/a").status)
	assert.Equal(t, 403, s.get("/x/../a").status, "by every reading of the path")
	assert.Equal(t, 200, s.get("/b").status)
	s.act(200, "exempt", `"network":"192.0.2.7"`)
	assert.Equal(t, 200, s.get("/a", from("192.0.2.7")).status)
	status, _ := s.askAdmin("/actions/end", `{"id":1,"who":"bob"}`)
	require.Equal(t, 200, status)
	assert.Equal(t, 200, s.get("/a").status)
	status, _ = s.askAdmin("/actions/end", `{"id":1,"who":"bob"}`)
	assert.Equal(t, 404, status)
	assert.Len(t, s.log.With(`msg="action: was ended" id=1 what="ban of the rule a" who=bob`), 1)
}

// TestABanOfAnAddressOfMany: if many clients share an address, the operator must confirm a ban of this address.
func TestABanOfAnAddressOfMany(t *testing.T) {
	s := start(t, behind+"rules: [{name: users, key: \"header:X-Key or ip\", rate: 1000/h, burst: 1000}]\n")
	for i := range 6 {
		s.actions.Refresh() // refills the number of requests that may be noted per second
		assert.Equal(t, "200", s.statuses(1, from("192.0.2.7"), fmt.Sprintf("X-Key: key-%d", i)))
	}
	assert.Contains(t, s.act(409, "ban", `"network":"192.0.2.7"`), "many share the address: 6 different users")
	assert.Equal(t, "200", s.statuses(1, from("192.0.2.7")))
	s.act(200, "ban", `"network":"192.0.2.7","confirm":true`)
	assert.Equal(t, "403", s.statuses(1, from("192.0.2.7")))
}

func TestBadActionRequests(t *testing.T) {
	s := start(t, behind+"rules: [{name: default, rate: 1/h}, {name: everyone, key: global, rate: 1/h}]\n")
	const rest = `,"for":"1h","who":"alice","why":"a test"}`
	for body, want := range map[string]string{
		`{"kind":"banish","network":"192.0.2.7"` + rest:                            `an action \"banish\": want ban, exempt or shadow`,
		`{"kind":"ban","network":"fe80::1%eth0"` + rest:                            "without a zone",
		`{"kind":"ban","network":"192.0.2.7/24"` + rest:                            "did you mean 192.0.2.0/24?",
		`{"kind":"ban","network":"192.0.2.7","rule":"default"` + rest:              "a network and a rule: want one of them",
		`{"kind":"ban"` + rest:                                                     `there is no rule \"\", and no network`,
		`{"kind":"ban","rule":"none"` + rest:                                       `there is no rule \"none\"`,
		`{"kind":"ban","rule":"default","parts":["nonsense"]` + rest:               "is not an IP address",
		`{"kind":"ban","rule":"default","parts":[]` + rest:                         "keys of 1 parts: 0 were given",
		`{"kind":"ban","rule":"everyone","parts":[]` + rest:                        "one key for all requests: act on the rule",
		`{"kind":"ban","rule":"default","hash":"0000000000000000"` + rest:          "is not watched",
		`{"kind":"ban","network":"192.0.2.7","for":"an hour","who":"a","why":"b"}`: "want a time such as 1h or 90m",
		`{"kind":"ban","network":"192.0.2.7","for":"721h","who":"a","why":"b"}`:    "want 1s to 720h0m0s",
		`{"kind":"ban","network":"192.0.2.7","for":"1h","why":"b"}`:                "who has 0 characters",
		`{"kind":"ban","network":"192.0.2.7","for":"1h","who":"a"}`:                "why has 0 characters",
	} {
		status, said := s.askAdmin("/actions", body)
		assert.Equal(t, 422, status, body)
		assert.Contains(t, said, want, body)
	}
	assert.False(t, s.actions.Any())
	s.change("admin: {address: \"0.0.0.0:0\", allow_remote: true}\n" + one)
	s.client.CloseIdleConnections()
	assert.Contains(t, s.act(403, "ban", `"network":"192.0.2.7"`), "set admin.token_file")
}

// TestWhoActs: an action records who made it. This is the name of the token or, without a token, the name in the
// request.
func TestWhoActs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte("alice:a-token-of-alice-alone\na-token-of-nobody"), 0o600))
	s := start(t, "admin: {address: \"127.0.0.1:0\", token_file: "+file+"}\n"+one)
	ask := func(token, who string) (int, string) {
		return s.askAdminAs(token, "/actions", `{"kind":"ban","network":"192.0.2.7","for":"1h","why":"a test"`+who+`}`)
	}
	status, body := ask("a-token-of-alice-alone", "")
	require.Equal(t, 200, status, body)
	assert.Contains(t, body, `"who":"alice"`)
	status, body = ask("a-token-of-alice-alone", `,"who":"bob"`)
	assert.Equal(t, 422, status)
	assert.Contains(t, body, `who is \"bob\", and the token is that of alice`)
	status, _ = ask("a-token-of-nobody", "")
	assert.Equal(t, 422, status)
	status, body = ask("a-token-of-nobody", `,"who":"carol"`)
	require.Equal(t, 200, status)
	assert.Contains(t, body, `"who":"carol"`)
	status, body = ask("a-token-of-nobody", `,"who":"alice"`)
	assert.Equal(t, 422, status)
	assert.Contains(t, body, `who is \"alice\", which is the name of another token`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.urlOf(administrators)+"actions.json", nil)
	require.NoError(t, err)
	r.SetBasicAuth("alice", "a-token-of-nobody")
	resp, err := s.client.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, 401, resp.StatusCode)
}

// TestABanForOtherProxies: /decide refuses a banned request with the status that the proxy expects.
func TestABanForOtherProxies(t *testing.T) {
	s, ask := startDecide(t, administered+"rules: [{name: a, rate: 1/h, burst: 100}]")
	s.act(200, "ban", `"network":"203.0.113.1"`)
	s.act(200, "exempt", `"network":"203.0.113.2"`)
	got := ask("/decide", append([]string{from("203.0.113.1")}, traefik...)...)
	assert.Equal(t, 403, got.StatusCode)
	got = ask("/decide?status=401", append([]string{from("203.0.113.1")}, nginx...)...)
	assert.Equal(t, 401, got.StatusCode)
	assert.Equal(t, "403", got.Header.Get("Weir-Status"))
	got = ask("/decide", append([]string{from("203.0.113.2")}, traefik...)...)
	assert.Equal(t, 200, got.StatusCode)
	assert.Empty(t, got.Header.Get("RateLimit"))
	s.stop()
	assert.Contains(t, s.log.String(), "msg=stopped requests=3 allowed=1 refused=2")
}

// TestABanOfAGRPCClient: a banned gRPC client gets PERMISSION_DENIED. After this status, clients do not retry.
func TestABanOfAGRPCClient(t *testing.T) {
	s, client := startGRPC(t, func(context.Context) error { return nil })
	_, err := s.actions.Add(actions.Action{
		Kind: actions.Ban, Target: actions.Target{Network: netip.MustParsePrefix("127.0.0.1/32")}, Who: "alice", Why: "a test",
	}, time.Hour)
	require.NoError(t, err)
	_, err = client.Check(t.Context(), &health.HealthCheckRequest{})
	assert.Equal(t, codes.PermissionDenied, status.Code(err), err)
}
