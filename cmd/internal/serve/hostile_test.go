package serve

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/internal/hostile"
)

// sixtyFourRules have each kind of match and key.
func sixtyFourRules() string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range 64 {
		key := []string{"ip", "[ip, path]", "cookie:sid or ip", fmt.Sprintf("cookie:c%d or ip", i), "query:k or ip",
			fmt.Sprintf("query:q%d or ip", i), "header:X-Api-Key or ip", "[method, path]"}[i%8]
		match := []string{`{path: /login}`, fmt.Sprintf(`{path: "/p%d/{id}/x"}`, i), `{path: "/{app}/run.php"}`,
			fmt.Sprintf(`{path: /static%d/}`, i), `{method: DELETE}`, `{query: {k: V}}`, `{not: {path: /health}}`,
			`{path: "/{rest...}", method: POST}`}[i/8]
		fmt.Fprintf(&b, "  - {name: r%d, rate: 1/h, burst: 1, max_keys: 1000, key: %q, match: %s}\n", i, key, match)
		if strings.HasPrefix(key, "[") {
			s := b.String()
			b.Reset()
			b.WriteString(strings.ReplaceAll(s, fmt.Sprintf("%q", key), key))
		}
	}
	return b.String()
}

// deciding returns what decides on a request as ServeHTTP does.
func deciding(t testing.TB) func(r *http.Request) int {
	file, err := rulefile.Parse("weir.yaml", []byte("listen: 127.0.0.1:0\n"+sixtyFourRules()))
	require.NoError(t, err)
	server, err := Start(Config{File: file, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(server.stop)
	g := server.enter()
	t.Cleanup(g.leave)
	return func(r *http.Request) int {
		again := *r
		newExchange(httptest.NewRecorder(), &again)
		if checkTarget(&again) != nil || g.read.check(&again) != nil {
			return http.StatusBadRequest
		}
		decision := g.limits.Decide(&again)
		if decision.Allowed() {
			return http.StatusOK
		}
		return http.StatusTooManyRequests
	}
}

// What is too much to read is answered 400, with any rules, and what programs send is not.
func TestWhatIsTooMuchToReadIsRefused(t *testing.T) {
	const rules = "server: {max_header_bytes: 65536}\nrules: [{name: a, rate: 100/s}]\n"
	s := start(t, rules)
	_, ask := startDecide(t, rules)
	for line, status := range map[string]int{
		"/" + strings.Repeat("/;", 2500): 400, "/" + strings.Repeat("x", 17000): 400, "/?" + strings.Repeat("a&", 2100): 400,
		"/" + strings.Repeat("x", 8000): 200, "/?" + strings.Repeat("a=b&", 1000): 200, "/" + strings.Repeat("/%E4%BD%A0", 300): 200,
	} {
		assert.Equal(t, status, s.raw("GET "+line), line[:20])
		if status == 400 {
			assert.Equal(t, status, ask("/decide", "X-Forwarded-Method: GET", "X-Forwarded-Uri: "+line).StatusCode, line[:20])
		}
	}
}

// The plain request is decided by the rules, and so are some of the hostile ones, or nothing would be measured.
func TestHostileRequestsAreDecided(t *testing.T) {
	decide := deciding(t)
	assert.NotEqual(t, http.StatusBadRequest, decide(hostile.Plain(64<<10)))
	random, decided := rand.New(rand.NewPCG(1, 2)), 0
	for range 200 {
		if decide(hostile.Request(random, 64<<10)) != http.StatusBadRequest {
			decided++
		}
	}
	assert.Greater(t, decided, 30)
}

// BenchmarkHostileRequests measures the decision on 10,000 hostile requests of 64 KiB with 64 rules. The slowest of
// them, run again, is reported as a multiple of a plain request of the same size.
func BenchmarkHostileRequests(b *testing.B) {
	decide := deciding(b)
	least := func(r *http.Request, times int) time.Duration {
		best := time.Hour
		for range times {
			begin := time.Now()
			decide(r)
			best = min(best, time.Since(begin))
		}
		return best
	}
	plain := least(hostile.Plain(64<<10), 200)
	type timed struct {
		r    *http.Request
		took time.Duration
	}
	for b.Loop() {
		random := rand.New(rand.NewPCG(1, 2))
		var slowest []timed
		for range 10_000 {
			r := hostile.Request(random, 64<<10)
			slowest = append(slowest, timed{r, least(r, 1)})
			if len(slowest) > 100 {
				slices.SortFunc(slowest, func(x, y timed) int { return int(y.took - x.took) })
				slowest = slowest[:20]
			}
		}
		worst := timed{}
		for _, of := range slowest {
			if of.took = least(of.r, 50); of.took > worst.took {
				worst = of
			}
		}
		b.ReportMetric(float64(plain.Microseconds()), "plain-µs")
		b.ReportMetric(float64(worst.took.Microseconds()), "worst-µs")
		b.ReportMetric(float64(worst.took)/float64(plain), "worst/plain")
		r := worst.r
		b.Logf("the worst: path %.40q (%d bytes), query %.40q (%d), cookie %.40q (%d), field %.20q (%d)", r.URL.EscapedPath(),
			len(r.URL.EscapedPath()), r.URL.RawQuery, len(r.URL.RawQuery), r.Header.Get("Cookie"), len(r.Header.Get("Cookie")),
			r.Header.Get("X-Api-Key"), len(r.Header.Get("X-Api-Key")))
	}
}
