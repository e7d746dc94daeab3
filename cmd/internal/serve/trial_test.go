package serve

import (
	"context"
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
rules:
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
	for i, asked := range []rulefile.TestRequest{
		{Line: "POST /login"}, {Line: "POST /login/"}, {Line: "GET /login"}, {Line: "POST /%6cogin?x"}, {Line: "GET /healthz"},
		{Line: "GET /admin/x"}, {Line: "GET /../login"}, {Line: "GET /", Header: http.Header{"X-Plan": {"gold"}}},
		{Line: "GET /", Header: http.Header{"X-Plan": {"free"}}}, {Line: "GET /", Header: http.Header{"X-Plan": {"bad"}}},
		{Line: "GET /", Header: http.Header{"X-Api-Key": {"a"}}}, {Line: "GET /", Header: http.Header{"X-Api-Key": {"a", "b"}}},
		{Line: "PUT /dear"}, {Line: "GET /", Header: http.Header{"X-Plan": {"gold"}, "Connection": {"x-plan"}}},
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
	assert.Len(t, statuses, 3, "200, 400 and 429")
}
