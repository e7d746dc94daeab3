package serve

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/internal/hostile"
)

// sixtyFourRules returns 64 rules. They have every kind of match and every kind of key, in all combinations.
func sixtyFourRules() string {
	keys := []string{"ip", "[ip, path]", "cookie:sid or ip", "cookie:c%d or ip", "query:k or ip", "query:q%d or ip",
		"header:X-Api-Key or ip", "[method, path]", "header:Authorization or ip", "[host, header:X-Kind or ip]", "header:X-H%d or ip"}
	matches := []string{`{path: /login}`, `{path: "/p%d/{id}/x"}`, `{path: "/{app}/run.php"}`, `{path: /static%d/}`, `{method: DELETE}`,
		`{query: {k: V}}`, `{not: {path: /health%d}}`, `{path: "/{rest...}", method: POST}`, `{header: {X-Kind: v%d}}`,
		`{path: {prefix: /users/p%d}}`, `{path: {regex: "^/users/[0-9]+/p%d"}}`, `{host: "*.b%d.example"}`,
		`{not: {header: {X-Kind: v%d}}, client: 198.51.100.0/24}`}
	var b strings.Builder
	b.WriteString("trusted_proxies: [192.0.2.0/24, 10.0.0.0/8]\nclient_ip: {from: x-forwarded-for}\nrules:\n")
	for i := range 64 {
		of := func(all []string) string { return strings.ReplaceAll(all[i%len(all)], "%d", strconv.Itoa(i)) }
		more := []string{"", "", ", cost: {header: X-Cost, max: 5}",
			", tiers: {header: X-Tier, values: {free: {rate: 2000000/s}}}"}[i%4]
		fmt.Fprintf(&b, "  - {name: r%d, rate: 1000000/s, max_keys: 1000, key: %s, match: %s%s}\n", i, of(keys), of(matches), more)
	}
	return b.String()
}

// deciding returns a function that decides a request as ServeHTTP does.
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
		if checkTarget(&again) != nil || g.fields.check(&again) != nil {
			return http.StatusBadRequest
		}
		decision := g.limits.Decide(&again)
		if decision.Allowed() {
			return http.StatusOK
		}
		return http.StatusTooManyRequests
	}
}

// TestWhatIsTooMuchToReadIsRefused: if a request would take too long to read, the answer is 400. This does not affect
// usual requests.
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

// TestHostileRequestsAreDecided checks that rules decide the requests of the benchmark below.
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

// BenchmarkHostileRequests measures how long the slowest of 10,000 hostile requests takes to decide. It reports this as
// a multiple of the time for a plain request of the same size.
func BenchmarkHostileRequests(b *testing.B) {
	decide := deciding(b)
	least := func(r *http.Request, best time.Duration) time.Duration {
		begin := time.Now()
		decide(r)
		return min(best, time.Since(begin))
	}
	type timed struct {
		r    *http.Request
		took time.Duration
	}
	slower := func(x, y timed) int { return int(y.took - x.took) }
	plain := timed{hostile.Plain(64 << 10), time.Hour}
	for b.Loop() {
		random := rand.New(rand.NewPCG(1, 2))
		var slowest []timed
		for range 10_000 {
			r := hostile.Request(random, 64<<10)
			slowest = append(slowest, timed{r, least(r, least(r, time.Hour))})
			if len(slowest) > 200 {
				slices.SortFunc(slowest, slower)
				slowest = slowest[:40]
			}
		}
		for range 200 {
			plain.took = least(plain.r, plain.took)
			for i := range slowest {
				slowest[i].took = least(slowest[i].r, slowest[i].took)
			}
		}
		slices.SortFunc(slowest, slower)
		b.ReportMetric(float64(plain.took.Microseconds()), "plain-µs")
		b.ReportMetric(float64(slowest[0].took.Microseconds()), "worst-µs")
		b.ReportMetric(float64(slowest[0].took)/float64(plain.took), "worst/plain")
		for _, of := range slowest[:5] {
			b.Logf("%v: %s", of.took, hostile.String(of.r))
		}
	}
}
