package serve

import (
	"bufio"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// raw sends a request line as it is, on a connection of its own, and returns the status.
func (r *running) raw(line string) int {
	r.t.Helper()
	conn := r.dial(line + " HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(r.t, err, line)
	resp.Body.Close()
	return resp.StatusCode
}

// A method in another case is the same method: many servers take it so.
func TestNoWayAroundAMethod(t *testing.T) {
	s := start(t, `rules:
  - {name: login, rate: 1/h, burst: 1, match: {method: POST}}
  - {name: read, rate: 1/h, burst: 1, match: {method: GET}}
  - {name: each, rate: 1/h, burst: 1, match: {method: [PUT, PATCH]}, key: method}`)
	assert.Equal(t, 200, s.raw("POST /login"))
	for _, method := range []string{"POST", "post", "Post", "POSt"} {
		assert.Equal(t, 429, s.raw(method+" /login"), method)
	}
	assert.Equal(t, 200, s.raw("head /"))
	assert.Equal(t, 429, s.raw("Get /"))
	assert.Equal(t, 200, s.raw("put /"))
	assert.Equal(t, 429, s.raw("PUT /"), "one key")
	assert.Equal(t, 200, s.raw("patch /"), "another key")
}

// CONNECT asks for a tunnel to anywhere.
func TestConnectIsRefused(t *testing.T) {
	reached := false
	s := start(t, "upstream: "+newUpstream(t, func(http.ResponseWriter, *http.Request) { reached = true })+"\n"+one)
	for _, line := range []string{"CONNECT a.example:443", "CONNECT /x", "connect /x", "Connect /x"} {
		assert.Equal(t, http.StatusMethodNotAllowed, s.raw(line), line)
	}
	assert.False(t, reached)
}
