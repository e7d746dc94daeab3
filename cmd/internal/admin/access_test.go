package admin

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/actions"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testlog"
)

const (
	mayChange = "alice-may-do-everything"
	mayLook   = "prometheus-may-only-look"
	nameless  = "whoever/has+it.may~do-everything=="
)

// tokens writes files of tokens, and returns their Access.
func tokens(t *testing.T, all, looks string) (*Access, error) {
	dir := t.TempDir()
	file, readFile := filepath.Join(dir, "tokens"), filepath.Join(dir, "looks")
	require.NoError(t, os.WriteFile(file, []byte(all), 0o600))
	if looks == "" {
		return NewAccess(file, "")
	}
	require.NoError(t, os.WriteFile(readFile, []byte(looks), 0o600))
	return NewAccess(file, readFile)
}

func goodTokens(t *testing.T) *Access {
	a, err := tokens(t, "alice:"+mayChange+"\n\n "+nameless+" \n", mayLook)
	require.NoError(t, err)
	return a
}

// guarded returns an Admin with tokens, all endpoints, and one key that can be reset.
func guarded(t *testing.T) (*Admin, *testlog.Log) {
	access, log := goodTokens(t), &testlog.Log{}
	l := limiter(t, engine.TokenBucket(engine.Per(1, time.Hour), 3))
	return start(t, Config{
		Actions: &Actions{
			Table: actions.New(actions.Config{Log: slog.New(slog.DiscardHandler)}), NeedToken: func() bool { return true },
			Client: func(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) },
		},
		Rules: func() []Rule {
			return []Rule{{Name: "login", Limiter: l, Parts: []string{"user"},
				Buckets: Local(l, func(parts []string) engine.Key { return l.Key(parts[0]) })}}
		},
		Pprof: true, Access: func() *Access { return access }, Log: slog.New(slog.NewTextHandler(log, nil)),
	}), log
}

// TestEveryEndpointHasARole: each endpoint accepts its role and higher roles only.
func TestEveryEndpointHasARole(t *testing.T) {
	a, _ := guarded(t)
	endpoints := a.endpoints(prometheus.NewRegistry())
	require.GreaterOrEqual(t, len(endpoints), 19)
	for _, e := range endpoints {
		method, path, _ := strings.Cut(e.pattern, " ")
		path = strings.NewReplacer("{$}", "", "{file}", "page.js").Replace(path)
		if path == "/debug/pprof/profile" || path == "/debug/pprof/trace" {
			path += "?seconds=wrong&debug=1" // so the profile ends at once
		}
		want := viewer
		if method == "POST" && path != "/key/peek" && path != "/client/peek" || strings.HasPrefix(path, "/debug/") {
			want = operator
		}
		assert.Equal(t, want, e.role, e.pattern)
		ask := func(fields ...string) int {
			return probe(a, method, "http://localhost:1"+path, fields...).Code
		}
		assert.Equal(t, 401, ask(), e.pattern)
		assert.Equal(t, 401, ask("Authorization: Bearer "+mayChange+"x"), e.pattern)
		assert.Equal(t, 401, ask("Authorization: Bearer "), e.pattern)
		assert.Equal(t, 401, ask("Authorization: Digest "+mayChange), e.pattern)
		assert.Equal(t, 401, ask("Authorization: "+basic("bob", mayChange)), "%s: another's token", e.pattern)
		assert.Equal(t, 401, ask("Authorization: "+basic("two words", nameless)), "%s: no name for a log", e.pattern)
		assert.Equal(t, 401, ask("Authorization: "+basic(mayChange, "")), e.pattern)
		look := ask("Authorization: Bearer " + mayLook)
		assert.Equal(t, want == operator, look == 403, "%s: to look: %d", e.pattern, look)
		for _, good := range []string{"Bearer " + mayChange, "bearer " + nameless, basic("alice", mayChange), basic("", nameless)} {
			assert.NotContains(t, []int{401, 403}, ask("Authorization: "+good), "%s: %s", e.pattern, good)
		}
		if method == "POST" {
			for _, from := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: http://evil.example"} {
				assert.Equal(t, 403, ask("Authorization: "+basic("alice", mayChange), from), "%s: %s", e.pattern, from)
			}
		}
		w := probe(a, method, "http://evil.example"+path, "Authorization: Bearer "+mayChange)
		assert.Equal(t, 403, w.Code, "%s: of another host", e.pattern)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		assert.Equal(t, 200, request(a, "GET", "http://weir.svc"+path, "").Code, "%s is for probes", path)
	}
	assert.Equal(t, 401, request(a, "GET", "http://localhost/", "").Code)
	assert.Equal(t, []string{`Basic realm="weir", charset="UTF-8"`, `Bearer realm="weir"`},
		request(a, "GET", "http://localhost/", "").Header()["Www-Authenticate"])
}

// probe sends a request whose context is done, so an event stream ends at once.
func probe(a *Admin, method, url string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		r.Header.Set(name, value)
	}
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	w := httptest.NewRecorder()
	a.Handler().ServeHTTP(w, r.WithContext(ctx))
	return w
}

func basic(user, password string) string {
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

// TestWithoutTokensNothingIsAsked: without configured tokens, the listener requires none.
func TestWithoutTokensNothingIsAsked(t *testing.T) {
	for _, access := range []func() *Access{nil, func() *Access { return nil }} {
		a := start(t, Config{Rules: none, Access: access})
		assert.Equal(t, 200, get(a, "/state.json").Code)
		assert.JSONEq(t, `{"who":"","sure":false,"may_change":true}`, get(a, "/caller.json").Body.String())
	}
}

func TestACallerIsNamed(t *testing.T) {
	a, log := guarded(t)
	who := func(fields ...string) string {
		return strings.TrimSpace(request(a, "GET", "http://localhost/caller.json", "", fields...).Body.String())
	}
	assert.JSONEq(t, `{"who":"alice","sure":true,"may_change":true}`, who("Authorization: Bearer "+mayChange))
	assert.JSONEq(t, `{"who":"carol","sure":false,"may_change":true}`, who("Authorization: "+basic("carol", nameless)))
	assert.JSONEq(t, `{"who":"","sure":false,"may_change":false}`, who("Authorization: Bearer "+mayLook))

	const form = `{"rule":"login","parts":["bob"]}`
	ask := func(token string) int {
		return request(a, "POST", "http://localhost/key/reset", form, "Content-Type: application/json", "Authorization: Bearer "+token).Code
	}
	assert.Equal(t, 200, ask(mayChange))
	assert.Contains(t, log.String(), `msg="admin: a key was reset" rule=login key=`)
	assert.Contains(t, log.String(), "who=alice")
	assert.Equal(t, 403, ask(mayLook))
	assert.Contains(t, log.String(), `err="the token may only look"`)
	assert.Equal(t, 401, ask("a-token-that-is-wrong"))
	assert.Contains(t, log.String(), `err="the token is not in the files`)
	assert.NotContains(t, log.String(), "a-token-that-is-wrong")
}

// TestAStreamEndsWithItsToken: a stream ends when its token is removed.
func TestAStreamEndsWithItsToken(t *testing.T) {
	var access atomic.Pointer[Access]
	access.Store(goodTokens(t))
	a, err := build(Config{Rules: none, Access: access.Load})
	require.NoError(t, err)
	server := httptest.NewServer(a.Handler())
	defer server.Close()
	r, err := http.NewRequest(http.MethodGet, server.URL+"/events", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+mayLook)
	resp, err := server.Client().Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	next, err := tokens(t, mayChange, "")
	require.NoError(t, err)
	access.Store(next)
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, resp.Body)
		ended <- err
	}()
	for second := int64(1); ; second++ { // ticks until the stream has noticed
		a.tick(time.Unix(second, 0))
		select {
		case <-ended:
			return
		default:
		}
	}
}

func TestBadTokens(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "0 tokens: want 1 to 16, one on each line",
		"short":                             "token 1: 5 characters: want at least 16, such as what openssl rand -hex 32 writes",
		mayChange + "\nbob:fifteen-letters": "token 2: 15 characters: want at least 16",
		"two words:" + mayChange:            "token 1: the name before the colon: want 1 to 64 letters",
		":" + mayChange:                     "token 1: the name before the colon",
		mayChange + " # alice's token":      "token 1: want letters, digits and -._~+/ only, and = at the end",
		"alice:bob:" + mayChange:            "token 1: want letters",
		mayChange + "\nbob:" + mayChange:    "token 2: it occurs twice, or in both files",
	} {
		_, err := tokens(t, text, "")
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), mayChange)
	}
	_, err := tokens(t, mayChange, mayChange)
	require.ErrorContains(t, err, "looks: token 1: it occurs twice, or in both files")
	_, err = NewAccess(filepath.Join(t.TempDir(), "none"), "")
	require.ErrorIs(t, err, os.ErrNotExist)
}
