package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
)

func limiter(t testing.TB, policy engine.Policy) *engine.Limiter {
	l, err := engine.New(policy, engine.MaxKeys(1000))
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func start(t testing.TB, c Config) *Admin {
	a, err := New(c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.Close()) })
	return a
}

func get(a *Admin, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	a.Handler().ServeHTTP(w, r)
	return w
}

func TestMetricsAreThere(t *testing.T) {
	l := limiter(t, engine.TokenBucket(engine.Per(1, time.Hour), 1))
	a := start(t, Config{
		Rules:   func() []Rule { return []Rule{{Name: "login", Limiter: l}} },
		Version: "v1",
		Reloads: func() Reload { return Reload{At: time.Unix(12, 0), Generation: 3} },
	})
	a.Observe("login", limits.Allowed)
	a.Observe("login", limits.Refused)
	a.Observe("login", limits.Refused)
	body := get(a, "/metrics").Body.String()
	for _, want := range []string{
		`weir_requests_total{outcome="allowed",rule="login"} 1`,
		`weir_requests_total{outcome="refused",rule="login"} 2`,
		`weir_requests_total{outcome="shadow_refused",rule="login"} 0`,
		fmt.Sprintf(`weir_table_slots{rule="login"} %d`, l.Stats().Slots),
		"weir_reload_success 0", "weir_reload_timestamp_seconds 12", "weir_reload_generation 3",
		`version="v1"} 1`, "go_goroutines ", "process_cpu_seconds_total ",
	} {
		assert.Contains(t, body, want)
	}
	assert.Equal(t, 200, get(a, "/healthz").Code)
	assert.Contains(t, get(a, "/state.json").Body.String(), `"refused":2`)
}
