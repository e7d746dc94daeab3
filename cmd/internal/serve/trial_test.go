package serve

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// TestATrialAnswersAsAServer: a trial and a server answer the same requests in the same way.
func TestATrialAnswersAsAServer(t *testing.T) {
	const text = `
exempt: {path: /healthz}
cors: {origins: "*"}
rules:
  - {name: budget, match: {path: /v1/}, rate: 100/m, tokens: {unknown: keep}}
  - {name: login, rate: 5/m, burst: 5, match: {path: /login, method: POST}}
  - name: api
    rate: 10/s
    burst: 12
    key: header:X-Api-Key or ip
    tiers: {header: X-Plan, values: {gold: {rate: 100/s}, free: {rate: unlimited}, bad: {rate: 0}}}
  - {name: admin, match: {path: /admin}, rate: 0}
  - {name: slots, concurrency: 1}
  - {name: dear, match: {path: /dear}, rate: 7/h, burst: 7, cost: 3}
  - {name: tried, rate: 1/h, shadow: true}
`
	server := start(t, text)
	file, err := rulefile.Parse("weir.yaml", []byte(text))
	require.NoError(t, err)
	trial, err := NewTrial(file)
	require.NoError(t, err)
	defer func() { assert.NoError(t, trial.Close()) }()
	statuses := map[int]int{}
	preflight := http.Header{"Origin": {"https://a.example"}, "Access-Control-Request-Method": {"POST"}}
	for i, asked := range []rulefile.TestRequest{
		{Line: "POST /login"}, {Line: "POST /login/"}, {Line: "GET /login"}, {Line: "POST /%6cogin?x"}, {Line: "GET /healthz"},
		{Line: "GET /admin/x"}, {Line: "GET /../login"}, {Line: "GET /", Header: http.Header{"X-Plan": {"gold"}}},
		{Line: "GET /", Header: http.Header{"X-Plan": {"free"}}}, {Line: "GET /", Header: http.Header{"X-Plan": {"bad"}}},
		{Line: "GET /", Header: http.Header{"X-Api-Key": {"a"}}}, {Line: "GET /", Header: http.Header{"X-Api-Key": {"a", "b"}}},
		{Line: "POST /v1/chat/completions"}, {Line: "GET /v1/models"}, {Line: "OPTIONS /login", Header: preflight},
		{Line: "OPTIONS /login"}, {Line: "PUT /dear"}, {Line: "GET /", Header: http.Header{"X-Plan": {"gold"}, "Connection": {"x-plan"}}},
	} {
		asked.Client = rulefile.DefaultClient
		for range 4 {
			r, err := asked.HTTPRequest()
			require.NoError(t, err)
			got, _ := trial.Ask(r, http.StatusOK)
			sent, err := http.NewRequestWithContext(context.Background(), r.Method, server.URL(), nil)
			require.NoError(t, err)
			sent.URL.Opaque, sent.Header = r.RequestURI, http.Header{}
			for name, values := range asked.Header {
				sent.Header[name] = values
			}
			answer, err := server.client.Do(sent)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			assert.Equal(t, answer.StatusCode, got, "%d: %+v", i, asked)
			statuses[got]++
		}
	}
	assert.Len(t, statuses, 4, "200, 204, 400 and 429")
	server.stop()
	assert.Contains(t, server.log.String(), fmt.Sprintf("allowed=%d refused=%d ", statuses[200], statuses[429]))
}

// TestAHoldOfATrial: a trial settles the estimate of a request as a server does. A failure of the upstream costs
// nothing. CONNECT is answered before any rule decides.
func TestAHoldOfATrial(t *testing.T) {
	file, err := rulefile.Parse("weir.yaml", []byte(`rules:
  - {name: budget, rate: 100/m, tokens: {estimate: 50, unknown: keep}}
  - {name: counted, rate: 100/m, cost: {estimate: 50, from: "json:x"}}
`))
	require.NoError(t, err)
	trial, err := NewTrial(file)
	require.NoError(t, err)
	defer func() { assert.NoError(t, trial.Close()) }()
	ask := func(line string, upstream int) int {
		r, err := (&rulefile.TestRequest{Line: line, Client: rulefile.DefaultClient}).HTTPRequest()
		require.NoError(t, err)
		status, _ := trial.Ask(r, upstream)
		return status
	}
	for range 9 {
		assert.Equal(t, 500, ask("POST /", 500))
		assert.Equal(t, 405, ask("CONNECT example.com:443", 200))
	}
	assert.Equal(t, []int{200, 200, 429}, []int{ask("POST /", 200), ask("POST /", 200), ask("POST /", 200)})
}
