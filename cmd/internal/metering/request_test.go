package metering

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/cmd/internal/usage"
)

// TestAskForUsage: only stream_options changes. If a body has several such members, every server reads the new value,
// whichever member it uses.
func TestAskForUsage(t *testing.T) {
	const asks = `"stream_options":{"include_usage":true}`
	for body, want := range map[string]string{
		`{}`:                                 `{` + asks + `}`,
		"{ \"a\" : [1, {}] }\n":              "{ \"a\" : [1, {}] ," + asks + "}\n",
		`{"stream_options":null}`:            `{` + asks + `}`,
		`{"stream_options": {"x":1} ,"b":2}`: `{"stream_options": {"x":1,"include_usage":true} ,"b":2}`,
		`{"stream_options":{"include_usage":false}}`:                      `{"stream_options":{"include_usage":false,"include_usage":true}}`,
		`{"stream_options":{"include_usage":"true"}}`:                     `{"stream_options":{"include_usage":"true","include_usage":true}}`,
		`{"stream_options":{},"stream_options":{}}`:                       `{` + asks + `,` + asks + `}`,
		`{"stream_options":{"include_usage":true},"stream_options":null}`: `{"stream_options":{"include_usage":true,"include_usage":true},` + asks + `}`,
		`{"a":{"stream_options":{}}}`:                                     `{"a":{"stream_options":{}},` + asks + `}`,
		`{"Stream_Options":{"Include_Usage":true}}`:                       `{"Stream_Options":{"Include_Usage":true},` + asks + `}`,
		`{"stream_options":{"x":1},"STREAM_OPTIONS":null}`:                `{"stream_options":{"x":1,"include_usage":true},"STREAM_OPTIONS":null,` + asks + `}`,
		`{"STREAM_OPTIONS":null,"stream_options":{}}`:                     `{"STREAM_OPTIONS":null,` + asks + `}`,
		`{"stream_options":1,"b":2}`:                                      `{` + asks + `,"b":2}`,
		`{"stream_options":[]}`:                                           `{` + asks + `}`,
	} {
		longer, ok := usageEditSize([]byte(body))
		assert.True(t, ok, body)
		got := addUsage([]byte(body), longer)
		assert.Equal(t, want, string(got))
		assert.Len(t, want, len(body)+longer)
		q := usage.ReadRequest(got, 0, nil)
		assert.True(t, q.IncludeUsage, "%s", got)
		var folds struct {
			Options struct {
				IncludeUsage any `json:"include_usage"`
			} `json:"stream_options"`
		}
		assert.NoError(t, json.Unmarshal(got, &folds))
		assert.Equal(t, true, folds.Options.IncludeUsage, "a server that does not mind the case of keys: %s", got)
	}
	for _, body := range []string{"", "[]", "1", `{"a"`, `{"a":}`, `{"stream_options":{"a":`} {
		_, ok := usageEditSize([]byte(body))
		assert.False(t, ok, body)
	}
}

// TestEncodingOf: a body counts as not encoded if a server may ignore its encoding.
func TestEncodingOf(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   string
	}{
		{nil, ""}, {[]string{""}, ""}, {[]string{"Identity"}, ""}, {[]string{"identity, identity", ","}, ""}, {[]string{" GZIP "}, "gzip"},
		{[]string{"identity", "gzip"}, "gzip"}, {[]string{"gzip, br"}, "gzip,br"},
	} {
		assert.Equal(t, c.want, encodingOf(http.Header{"Content-Encoding": c.values}), "%v", c.values)
	}
}

// TestIsFree: a request is free only if it certainly costs nothing at any server.
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
