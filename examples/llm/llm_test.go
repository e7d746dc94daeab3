package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/examples/internal/exampletest"
)

// TestLLM: the example's command starts weir and the server, and every API works through weir.
func TestLLM(t *testing.T) {
	weir := exampletest.Weir(t, "..")
	t.Chdir("..")
	url := exampletest.Script(t, "llm", weir)
	for path, text := range map[string]string{
		"/v1/chat/completions": `"total_tokens":`, "/v1/responses": `"total_tokens":`, "/v1/messages": `"output_tokens":5`,
		"/v1beta/models/tiny:generateContent": `"totalTokenCount":`, "/api/chat": `"eval_count":5`,
		"/v1beta/models/tiny:streamGenerateContent?alt=sse": `"finishReason":"STOP"`, "/v1/embeddings": `"total_tokens":`,
	} {
		status, _, body := post(t, url+path, path, `{"model":"tiny","max_tokens":5,"max_output_tokens":5}`)
		assert.Equal(t, 200, status, path)
		assert.Contains(t, body, text, path)
	}
	chat := url + "/v1/chat/completions"
	_, _, body := post(t, chat, "stream", `{"model":"tiny","stream":true,"max_tokens":5}`)
	assert.Contains(t, body, "[DONE]")
	assert.NotContains(t, body, "usage", "what weir asked for")
	status, header, _ := post(t, chat, "stream", `{"model":"none"}`)
	assert.Equal(t, 404, status)
	assert.Equal(t, "6000", header.Get("X-Ratelimit-Limit-Tokens"))
	refused := 0
	for range 20 {
		if status, _, body = post(t, chat, "blue", `{"model":"tiny","max_tokens":500}`); status == 429 {
			refused++
			assert.Contains(t, body, `"code":"rate_limit_exceeded"`)
		}
	}
	assert.Greater(t, refused, 5)
}

func post(t *testing.T, url, team, body string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("X-Team", team)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header, string(text)
}

// TestSDKs: the official SDKs from npm work through weir. `make test-llm` installs them.
func TestSDKs(t *testing.T) {
	modules := os.Getenv("WEIR_LLM_NODE_MODULES")
	if modules == "" {
		t.Skip("WEIR_LLM_NODE_MODULES is not set: make test-llm")
	}
	weir := exampletest.Weir(t, "..")
	t.Chdir("..")
	url := exampletest.Script(t, "llm", weir)
	cmd := exec.Command("node", "llm/sdks.mjs", url)
	cmd.Env = append(os.Environ(), "NODE_MODULES="+modules)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "the SDKs work\n", string(out))
}
