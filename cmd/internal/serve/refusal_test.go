package serve

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRefusalsThatFitTheSite: refusals have the status, headers and body of the file or of the rule.
func TestRefusalsThatFitTheSite(t *testing.T) {
	s := start(t, `
response:
  status: 503
  headers: {Cache-Control: no-store, X-Site: here}
rules:
  - name: page
    match: {path: /page}
    rate: 1/h
    response:
      status: 429
      content_type: text/html; charset=utf-8
      template: |
        <p title="{{.Rule}}">{{if .Never}}never{{else}}again in {{.RetryAfter}} s, {{.Remaining}} of {{.Limit}} left{{end}}</p>
  - {name: data, match: {path: /data}, rate: 1/h, response: {headers: {Vary: Cookie}, content_type: application/json, template: '{"rule":"{{.Rule}}","code":{{.Status}}}'}}
  - {name: never, match: {path: /never}, rate: 0, response: {template: "{{.Never}} {{.RetryAfter}}"}}
  - {name: rest, match: {not: {path: [/page, /data, /never]}}, rate: 1/h}
`)
	for _, c := range []struct {
		path, contentType, body, cache, vary string
		status                               int
	}{
		{"/page", "text/html; charset=utf-8", "<p title=\"page\">again in 3600 s, 0 of 1 left</p>\n", "no-store", "", 429},
		{"/data", "application/json", `{"rule":"data","code":503}`, "", "Cookie", 503},
		{"/never", "text/plain; charset=utf-8", "true 0", "no-store", "", 503},
		{"/rest", "application/problem+json", `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",` +
			`"title":"Request cannot be satisfied as assigned quota has been exceeded","status":503,` +
			`"detail":"Try again in 3600 s.","violated-policies":["rest"]}` + "\n", "no-store", "", 503},
	} {
		if c.path != "/never" {
			assert.Equal(t, http.StatusOK, s.get(c.path).status)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+c.path, nil)
		require.NoError(t, err)
		answer, err := s.client.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		answer.Body.Close()
		assert.Equal(t, c.status, answer.StatusCode, c.path)
		assert.Equal(t, c.body, string(body))
		assert.Equal(t, c.contentType, answer.Header.Get("Content-Type"))
		assert.Equal(t, c.cache, answer.Header.Get("Cache-Control"))
		assert.Equal(t, c.vary, answer.Header.Get("Vary"))
		assert.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
		assert.NotEmpty(t, answer.Header.Get("RateLimit-Policy"))
		if c.path != "/never" {
			assert.Equal(t, "3600", answer.Header.Get("Retry-After"))
		}
	}
}

// TestAReloadChangesRefusals: a reload changes a rule's refusals even if its limit stays.
func TestAReloadChangesRefusals(t *testing.T) {
	s := start(t, "rules: [{name: a, rate: 0, response: {template: one}}]\n")
	assert.Equal(t, "one", s.get("/").body)
	s.change("rules: [{name: a, rate: 0, response: {template: two, status: 403}}]\n")
	assert.Equal(t, "two", s.get("/").body)
	assert.Equal(t, http.StatusForbidden, s.get("/").status)
}
