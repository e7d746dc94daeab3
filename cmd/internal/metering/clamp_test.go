package metering

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/usage"
)

// TestCut: only bounds above the number left are lowered, wherever they are in the body.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		api              rulefile.API
		path, body, want string
	}{
		{rulefile.APIOpenAI, "/v1/chat/completions", "{ \"max_tokens\" : 5000 ,\"a\":[1, {\"max_tokens\":9000}]}\n",
			"{ \"max_tokens\" : 70 ,\"a\":[1, {\"max_tokens\":9000}]}\n"},
		{rulefile.APIOpenAI, "/v1/chat/completions", `{"max_tokens":5,"max_completion_tokens":1e5,"max_tokens":"5000","max_tokens":"7"}`,
			`{"max_tokens":5,"max_completion_tokens":70,"max_tokens":70,"max_tokens":7}`},
		{rulefile.APIOpenAI, "/v1/chat/completions", `{"max_tokens":null,"max_completion_tokens":100}`,
			`{"max_tokens":null,"max_completion_tokens":70}`},
		{rulefile.APIOpenAI, "/v1/chat/completions", `{"max_tokens":null}`, `{"max_tokens":70}`},
		{rulefile.APIOpenAI, "/v1/chat/completions", `{"model":"a"}`, `{"model":"a","max_completion_tokens":70}`},
		{rulefile.APIOpenAI, "/v1/chat/completions", "{ }", "{ \"max_completion_tokens\":70}"},
		{rulefile.APIOpenAI, "/v1/completions", `{"prompt":"max_tokens"}`, `{"prompt":"max_tokens","max_tokens":70}`},
		{rulefile.APIOpenAI, "/v1/responses", `{"input":"a","max\u005foutput_tokens":9999}`, `{"input":"a","max\u005foutput_tokens":70}`},
		{rulefile.APIOpenAI, "/v1/responses", `{"input":"a"}`, `{"input":"a","max_output_tokens":70}`},
		{rulefile.APIAnthropic, "/v1/messages", `{"MAX_TOKENS":1024,"messages":[]}`, `{"MAX_TOKENS":70,"messages":[],"max_tokens":70}`},
		{rulefile.APIAnthropic, "/v1/messages", `{"max_tokens":1024,"Max_Tokens":null}`, `{"max_tokens":70,"Max_Tokens":70}`},
		{rulefile.APIOpenAI, "/v1/chat/completions", `{"max_tokens":null,"num_predict":1}`, `{"max_tokens":70,"num_predict":1}`},
		{rulefile.APIOpenAI, "/v1/chat/completions", `{"max_tokens":1,"max_tokens":null}`, `{"max_tokens":1,"max_tokens":70}`},
		{rulefile.APIOpenAI, "/v1/chat/completions", `{"num_predict":null,"max_new_tokens":-1}`,
			`{"num_predict":null,"max_new_tokens":70,"max_completion_tokens":70}`},
		{rulefile.APIOpenAI, "/v1/chat/completions", `{"options":{"num_predict":1}}`, `{"options":{"num_predict":1},"max_completion_tokens":70}`},
		{rulefile.APIOpenAI, "/v1/responses", `{"max_tokens":1}`, `{"max_tokens":1,"max_output_tokens":70}`},
		{rulefile.APIAnthropic, "/v1/complete", `{"max_tokens":1}`, `{"max_tokens":1,"max_tokens_to_sample":70}`},
		{rulefile.APIGemini, "/v1beta/models/a:generateContent", `{"generationConfig":{"maxOutputTokens":800, "topK":1}}`,
			`{"generationConfig":{"maxOutputTokens":70, "topK":1}}`},
		{rulefile.APIGemini, "/v1beta/models/a:generateContent", `{"generation_config":{"max_output_tokens":800}}`,
			`{"generation_config":{"max_output_tokens":70}}`},
		{rulefile.APIGemini, "/v1beta/models/a:generateContent", `{"generationConfig": {"topK":1} ,"contents":[]}`,
			`{"generationConfig": {"topK":1,"maxOutputTokens":70} ,"contents":[]}`},
		{rulefile.APIGemini, "/v1beta/models/a:generateContent", `{"generationConfig":{}}`, `{"generationConfig":{"maxOutputTokens":70}}`},
		{rulefile.APIGemini, "/v1beta/models/a:generateContent", `{"generationConfig":null}`, `{"generationConfig":{"maxOutputTokens":70}}`},
		{rulefile.APIGemini, "/v1beta/models/a:generateContent", `{"contents":[]}`, `{"contents":[],"generationConfig":{"maxOutputTokens":70}}`},
		{rulefile.APIGemini, "/v1beta/models/a:generateContent", `{"generation_config":{}}`, `{"generation_config":{"maxOutputTokens":70}}`},
		{rulefile.APIGemini, "/v1beta/models/a:generateContent", `{"generationConfig":{"maxOutputTokens":7},"generationConfig":{}, "generation_config":null}`,
			`{"generationConfig":{"maxOutputTokens":7},"generationConfig":{"maxOutputTokens":70}, "generation_config":{"maxOutputTokens":70}}`},
		{rulefile.APIOllama, "/api/chat", `{"OPTIONS":{"num_predict":900,"a":1}}`,
			`{"OPTIONS":{"num_predict":70,"a":1,"num_predict":70},"options":{"num_predict":70}}`},
		{rulefile.APIOllama, "/api/chat", `{"options":{"num_predict":-1}}`, `{"options":{"num_predict":70}}`},
		{rulefile.APIOllama, "/api/generate", `{}`, `{"options":{"num_predict":70}}`},
		{rulefile.APIBedrock, "/model/a/converse", `{"inferenceConfig":{"maxTokens":800}}`, `{"inferenceConfig":{"maxTokens":70}}`},
		{rulefile.APIBedrock, "/model/a/converse", `{"messages":[]}`, `{"messages":[],"inferenceConfig":{"maxTokens":70}}`},
		{rulefile.APIBedrock, "/model/eu.anthropic.claude/invoke", `{"max_tokens":800}`, `{"max_tokens":70}`},
	} {
		got := cutTo70(c.body, c.api, c.path)
		assert.Equal(t, c.want, got, c.body)
		if !strings.Contains(got, "OPTIONS") {
			assert.Equal(t, got, cutTo70(got, c.api, c.path), "what is cut needs no more")
		}
	}
	for _, body := range []string{"", "[]", "1", `{"a"`, `{"a":}`, `{"a":1}{"a":1}`, `{"a":1,}`, `{"options":{"a":}}`, `{'a':1}`} {
		assert.Nil(t, newBoundEditor([]byte(body), boundsOfChat, false), body)
	}
	assert.Nil(t, newBoundEditor([]byte(`{"max_tokens":1}`), nil, false), "nobody knows where a bound goes")
	assert.Nil(t, newBoundEditor([]byte(`{"max_tokens":1}`), boundsOfBatch, false))
}

func cutTo70(body string, api rulefile.API, path string) string {
	of := boundsOf(api, path)
	q := usage.ReadRequest([]byte(body), 0, of)
	cut := newBoundEditor([]byte(body), of, q.Cap() > 0)
	if cut == nil {
		return ""
	}
	return string(cut.lowerTo(70))
}

// TestBoundsOf: a field counts as a bound at a path only if the server certainly obeys it there.
func TestBoundsOf(t *testing.T) {
	for _, c := range []struct {
		api  rulefile.API
		path string
		want *usage.Bounds
	}{
		{rulefile.APIOpenAI, "/v1/chat/completions", boundsOfChat}, {rulefile.APIOpenAI, "/openai/deployments/a/completions", boundsOfMessages},
		{rulefile.APIOpenAI, "/v1/responses", boundsOfResponses}, {rulefile.APIOpenAI, "/generate", nil}, {rulefile.APIOpenAI, "/v1/messages", nil},
		{rulefile.APIOpenAI, "/v1/chat/completions/", nil}, {rulefile.APIOpenAI, "/v1/responses/input_items", nil},
		{rulefile.APIAnthropic, "/v1/messages", boundsOfMessages}, {rulefile.APIAnthropic, "/v1/messages/batches", boundsOfBatch},
		{rulefile.APIAnthropic, "/v1/complete", boundsOfComplete}, {rulefile.APIAnthropic, "/v1/messages/a/chat/completions", nil},
		{rulefile.APIGemini, "/v1beta/models/a:streamGenerateContent", boundsOfGemini}, {rulefile.APIGemini, "/v1beta/models/a:batchGenerateContent", nil},
		{rulefile.APIOllama, "/api/chat", boundsOfOllama}, {rulefile.APIOllama, "/v1/chat/completions", nil},
		{rulefile.APIBedrock, "/model/a/converse-stream", boundsOfConverse}, {rulefile.APIBedrock, "/model/amazon.titan/invoke", nil},
		{rulefile.APIBedrock, "/model/anthropic.claude/invoke-with-response-stream", boundsOfMessages},
		{rulefile.APIBedrock, "/model/us.anthropic.claude/invoke", boundsOfMessages}, {rulefile.APIBedrock, "/model/meta.anthropic/invoke", nil},
		{rulefile.APIAuto, "/v1/chat/completions", nil},
	} {
		assert.True(t, c.want == boundsOf(c.api, c.path), "%s %s", c.api, c.path)
	}
	assert.Equal(t, rulefile.APIOpenAI, apiOf("/api/v1/chat/completions"), "as of OpenRouter")
}

// TestModelIn checks which model a path names.
func TestModelIn(t *testing.T) {
	for _, c := range []struct {
		api        rulefile.API
		path, want string
	}{
		{rulefile.APIGemini, "/v1beta/models/gemini-pro:streamGenerateContent", "gemini-pro"},
		{rulefile.APIGemini, "/v1/projects/p/models/g:predict", "g"}, {rulefile.APIGemini, "/v1beta/models", "none"},
		{rulefile.APIGemini, "/models/", "none"}, {rulefile.APIBedrock, "/model/anthropic.claude-3/converse", "anthropic.claude-3"},
		{rulefile.APIBedrock, "/model/anthropic.claude-3%3A0/converse", "anthropic.claude-3:0"},
		{rulefile.APIBedrock, "/model/arn%3Aaws%2Fx/converse", ""}, {rulefile.APIOpenAI, "/model/a/b", "none"},
		{rulefile.APIOpenAI, "/openai/deployments/big/chat/completions", "big"},
		{rulefile.APIOpenAI, "/OpenAI/Deployments/big/chat/completions", "big"},
		{rulefile.APIOpenAI, "/v1/engines/big/completions", "big"}, {rulefile.APIOpenAI, "/deployments/big", "none"},
		{rulefile.APIOpenAI, "/v1/chat/completions", "none"}, {rulefile.APIAnthropic, "/v1/messages", "none"},
		{rulefile.APIAnthropic, "/v1/projects/p/publishers/anthropic/models/claude:rawPredict", "claude"},
		// Servers may find another model, or one at all, so the body does not count.
		{rulefile.APIOpenAI, "/openai/deployments/cheap/../big/chat/completions", ""},
		{rulefile.APIOpenAI, "/openai/deployments/cheap%2F..%2Fbig/chat/completions", ""},
		{rulefile.APIOpenAI, "/openai%5Cdeployments%5Cbig%5Cchat/completions", ""},
		{rulefile.APIOpenAI, "/openai/deployments//big/chat/completions", ""},
		{rulefile.APIGemini, "/v1beta/models/cheap/../big:generateContent", ""},
	} {
		u, err := url.ParseRequestURI(c.path)
		require.NoError(t, err)
		r := &http.Request{Method: http.MethodPost, URL: u, Header: http.Header{}, Body: http.NoBody}
		meters := NewMeters([]*Meter{{tokens: &rulefile.Tokens{API: c.api}, match: func(*http.Request) bool { return true }}}, new(States), nil)
		r, done, err := meters.Read(r)
		require.NoError(t, err)
		done()
		q := requestOf(r)
		q.body.Model, q.isComplete = "none", true
		assert.Equal(t, c.want, q.model(), "%s %s", c.api, c.path)
	}
}
