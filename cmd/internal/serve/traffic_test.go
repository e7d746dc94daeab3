package serve

import (
	"bufio"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/freeport"
)

// series returns the metrics whose lines begin with prefix. It removes the prefix.
func (r *running) series(prefix string) (lines []string) {
	r.t.Helper()
	_, metrics := r.askAdmin("/metrics")
	for line := range strings.Lines(metrics) {
		if rest, is := strings.CutPrefix(line, prefix); is {
			lines = append(lines, strings.TrimSpace(rest))
		}
	}
	return lines
}

// TestRequestsCountOnceByTheirStatus: if two rules match a request, the request counts once. An answer counts for the
// part that answered: weir, its limits, or the upstream.
func TestRequestsCountOnceByTheirStatus(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/limited":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/half":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
		}
	})
	s := start(t, administered+`
routes:
  - {match: {path: /down}, upstream: "http://`+freeport.Address(t)+`"}
  - {match: {path: [/ok, /limited, /half]}, upstream: "`+upstream+`"}
rules:
  - {name: a, rate: 1/h, burst: 6}
  - {name: b, rate: 1/h, burst: 100, key: "header:X-Key"}
`)
	for _, path := range []string{"/ok", "/ok", "/limited", "/down", "/nowhere"} {
		s.get(path)
	}
	assert.Equal(t, []string{"1"}, s.series("weir_upstream_connections "))
	assert.Equal(t, 400, s.get("/ok", "X-Key: 1", "X-Key: 2").status)
	conn := s.dial("GET /half HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	_, err := io.Copy(io.Discard, conn)
	require.NoError(t, err)
	assert.Equal(t, "429 429", s.statuses(2))
	assert.ElementsMatch(t, []string{
		`{by="upstream",code="200"} 3`, `{by="upstream",code="429"} 1`, `{by="limits",code="429"} 2`,
		`{by="weir",code="502"} 1`, `{by="weir",code="404"} 1`, `{by="weir",code="400"} 1`,
	}, s.series("weir_http_requests_total"))
	assert.Equal(t, []string{"0"}, s.series("weir_http_requests_in_flight "))
	assert.ElementsMatch(t, []string{`{by="limits"} 2`, `{by="upstream"} 4`, `{by="weir"} 3`},
		s.series("weir_http_request_duration_seconds_count"))
	failures := strings.Join(s.series("weir_upstream_failures_total"), "\n")
	assert.Regexp(t, `reason="unanswered",upstream="http://127.0.0.1:\d+"} 1`, failures)
	assert.Contains(t, failures, `{reason="broken",upstream="`+upstream+`"} 1`)
	assert.Contains(t, s.series("weir_upstream_header_seconds_count"), `{upstream="`+upstream+`"} 4`)

	s.write("rules: none")
	require.Error(t, s.Reload())
	reloads := strings.Join(s.series("weir_reloads_total"), "\n")
	assert.Contains(t, reloads, `{result="done"} 0`)
	assert.Regexp(t, `{result="failed"} [12](\n|$)`, reloads, "the watcher may reload, too")
	_, metrics := s.askAdmin("/metrics")
	problems, err := promlint.New(strings.NewReader(metrics)).Lint() // what "promtool check metrics" says
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// TestTheAccessLogHasNoSecrets: each request has a line in the access log. The line has no query, header or key.
func TestTheAccessLogHasNoSecrets(t *testing.T) {
	s := start(t, `log: {access: all, refusals: all}
rules:
  - {name: logins, rate: 1/h, burst: 1, key: "header:X-API-Key", match: {path: "/users/{id}/login", method: GET}}
  - {name: trial, rate: 1/h, burst: 1, shadow: true}
`)
	for range 2 {
		s.get("/users/7/login?token=secret1", "X-API-Key: secret2", "Cookie: id=secret3", "Authorization: Bearer secret4")
	}
	s.get("/")
	s.stop()
	log := s.log.String()
	assert.NotContains(t, log, "secret")
	lines := regexp.MustCompile(`(?m)msg=request .*$`).FindAllString(log, -1)
	require.Len(t, lines, 3)
	assert.Regexp(t, `^msg=request client=127.0.0.1 method=GET host=127.0.0.1:\d+ path=/users/7/login proto=HTTP/1.1 `+
		`status=200 bytes=[1-9]\d* seconds=[0-9.e-]+ by=upstream$`, lines[0])
	assert.Regexp(t, `status=429 bytes=[1-9]\d* seconds=[0-9.e-]+ by=limits$`, lines[1])
	assert.Equal(t, []string{
		`msg=refused client=127.0.0.1 rule=logins for="method GET, path /users/{id}/login" ` +
			`method=GET wait=1h0m0s shadow=false`,
		`msg=refused client=127.0.0.1 rule=trial for="all requests" method=GET wait=1h0m0s shadow=true`,
	}, regexp.MustCompile(`(?m)msg=refused .*$`).FindAllString(log, -1))
}

func TestTheAccessLogIsSampled(t *testing.T) {
	s := start(t, "log: {access: 1/5}\nrules: [{name: a, rate: 1/h, burst: 2000}]")
	for range 1000 {
		s.get("/")
	}
	s.stop()
	n := strings.Count(s.log.String(), "msg=request ")
	assert.InDelta(t, 200, n, 90, "seven standard deviations")
}

// TestAWebSocketInTheAccessLog: when a WebSocket ends, the access log gets a line with the status 101.
func TestAWebSocketInTheAccessLog(t *testing.T) {
	s := start(t, "log: {access: all}\nupstream: "+newUpstream(t, upgradeUpstream)+"\n"+one)
	conn := s.dial("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	assert.Equal(t, 101, resp.StatusCode)
	assert.NotContains(t, s.log.String(), "msg=request")
	assert.EqualValues(t, 1, s.traffic.inFlight.Load())
	require.NoError(t, conn.Close())
	s.waitFor("status=101")
	s.stop()
	assert.Zero(t, s.traffic.inFlight.Load())
}
