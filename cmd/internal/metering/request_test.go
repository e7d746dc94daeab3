package metering

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAskForUsage: nothing but stream_options changes.
func TestAskForUsage(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                                 `{"stream_options":{"include_usage":true}}`,
		"{ \"a\" : [1, {}] }\n":              "{ \"a\" : [1, {}] ,\"stream_options\":{\"include_usage\":true}}\n",
		`{"stream_options":null}`:            `{"stream_options":{"include_usage":true}}`,
		`{"stream_options": {"x":1} ,"b":2}`: `{"stream_options": {"x":1,"include_usage":true} ,"b":2}`,
		`{"stream_options":{"include_usage":false}}`: `{"stream_options":{"include_usage":false,"include_usage":true}}`,
		`{"stream_options":{},"stream_options":{}}`:  `{"stream_options":{"include_usage":true},"stream_options":{"include_usage":true}}`,
		`{"a":{"stream_options":{}}}`:                `{"a":{"stream_options":{}},"stream_options":{"include_usage":true}}`,
	} {
		longer, ok := usageAdds([]byte(body))
		assert.True(t, ok, body)
		assert.Equal(t, want, string(addUsage([]byte(body), longer)))
		assert.Len(t, want, len(body)+longer)
	}
	for _, body := range []string{"", "[]", "1", `{"a"`, `{"stream_options":1}`, `{"a":}`, `{"stream_options":{"a":`} {
		_, ok := usageAdds([]byte(body))
		assert.False(t, ok, body)
	}
}

// TestIsFree: only what can cost nothing to any server does.
func TestIsFree(t *testing.T) {
	for request, want := range map[string]bool{
		"GET /v1/models": true, "DELETE /v1/files/a": true, "POST /v1/messages/count_tokens": true,
		"POST /v1beta/models/gemini-2.5-pro:countTokens": true, "POST /v1/chat/completions": false, "PUT /v1/chat/completions": false,
		"POST /v1/messages/count_tokens/": false, "POST /v1beta/models/a:generateContent": false,
		"POST /v1beta/models/a:generateContent;:countTokens": false, "POST /v1beta/models/../a/:countTokens": false,
		"POST /v1beta/models/a%3AcountTokens": false, "POST /v1beta/models/..:countTokens": false,
		"POST /v1beta/models/a/models/b:countTokens": false,
	} {
		method, target, _ := strings.Cut(request, " ")
		assert.Equal(t, want, IsFree(httptest.NewRequest(method, target, nil)), request)
	}
	assert.False(t, IsFree(httptest.NewRequest("GET", "/v1/chat/completions", strings.NewReader("{}"))), "a body")
	chunked := httptest.NewRequest("DELETE", "/v1/chat/completions", http.NoBody)
	chunked.ContentLength = -1
	assert.False(t, IsFree(chunked), "a body in chunks")
	socket := httptest.NewRequest("GET", "/v1/realtime", nil)
	socket.Header.Set("Upgrade", "websocket")
	assert.False(t, IsFree(socket), "a WebSocket")
}
