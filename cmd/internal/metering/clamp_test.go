package metering

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// TestCut: bounds above what is left are lowered, wherever they are, and nothing else changes.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		api              rulefile.API
		path, body, want string
	}{
		{rulefile.APIOpenAI, "/v1/chat/completions", "{ \"max_tokens\" : 5000 ,\"a\":[1, {\"max_tokens\":9000}]}\n",
			"{ \"max_tokens\" : 70 ,\"a\":[1, {\"max_tokens\":9000}]}\n"},
		{rulefile.APIOpenAI, "/v1/chat/completions", `{"max_tokens":5,"max_completion_tokens":1e5,"max_tokens":"5000"}`,
			`{"max_tokens":5,"max_completion_tokens":70,"max_tokens":70}`},
		{rulefile.APIOpenAI, "/v1/chat/completions", `{"max_tokens":null,"max_completion_tokens":100}`,
			`{"max_tokens":null,"max_completion_tokens":70}`},
		{rulefile.APIOpenAI, "/v1/chat/completions", `{"max_tokens":null}`, `{"max_tokens":70}`},
		{rulefile.APIOpenAI, "/v1/chat/completions", `{"model":"a"}`, `{"model":"a","max_completion_tokens":70}`},
		{rulefile.APIOpenAI, "/v1/chat/completions", "{ }", "{ \"max_completion_tokens\":70}"},
		{rulefile.APIOpenAI, "/v1/completions", `{"prompt":"max_tokens"}`, `{"prompt":"max_tokens","max_tokens":70}`},
		{rulefile.APIOpenAI, "/v1/responses", `{"input":"a","max\u005foutput_tokens":9999}`, `{"input":"a","max\u005foutput_tokens":70}`},
		{rulefile.APIOpenAI, "/v1/responses", `{"input":"a"}`, `{"input":"a","max_output_tokens":70}`},
		{rulefile.APIAnthropic, "/v1/messages", `{"MAX_TOKENS":1024,"messages":[]}`, `{"MAX_TOKENS":70,"messages":[]}`},
		{rulefile.APIGemini, "/v1beta/models/a:generateContent", `{"generationConfig":{"maxOutputTokens":800, "topK":1}}`,
			`{"generationConfig":{"maxOutputTokens":70, "topK":1}}`},
		{rulefile.APIGemini, "/v1beta/models/a:generateContent", `{"generation_config":{"max_output_tokens":800}}`,
			`{"generation_config":{"max_output_tokens":70}}`},
		{rulefile.APIGemini, "/v1beta/models/a:generateContent", `{"generationConfig": {"topK":1} ,"contents":[]}`,
			`{"generationConfig": {"topK":1,"maxOutputTokens":70} ,"contents":[]}`},
		{rulefile.APIGemini, "/v1beta/models/a:generateContent", `{"generationConfig":{}}`, `{"generationConfig":{"maxOutputTokens":70}}`},
		{rulefile.APIGemini, "/v1beta/models/a:generateContent", `{"generationConfig":null}`, `{"generationConfig":{"maxOutputTokens":70}}`},
		{rulefile.APIGemini, "/v1beta/models/a:generateContent", `{"contents":[]}`, `{"contents":[],"generationConfig":{"maxOutputTokens":70}}`},
		{rulefile.APIOllama, "/api/chat", `{"options":{"num_predict":-1}}`, `{"options":{"num_predict":70}}`},
		{rulefile.APIOllama, "/api/generate", `{}`, `{"options":{"num_predict":70}}`},
		{rulefile.APIBedrock, "/model/a/converse", `{"inferenceConfig":{"maxTokens":800}}`, `{"inferenceConfig":{"maxTokens":70}}`},
		{rulefile.APIBedrock, "/model/a/converse", `{"messages":[]}`, `{"messages":[],"inferenceConfig":{"maxTokens":70}}`},
		{rulefile.APIBedrock, "/model/a/invoke", `{"max_tokens":800}`, `{"max_tokens":70}`},
	} {
		cut := newCut([]byte(c.body), c.api, c.path)
		if assert.NotNil(t, cut, c.body) {
			assert.Equal(t, c.want, string(cut.to(70)), c.body)
		}
	}
	for _, body := range []string{"", "[]", "1", `{"a"`, `{"a":}`, `{"a":1}{"a":1}`, `{"a":1,}`, `{"options":{"a":}}`, `{'a':1}`} {
		assert.Nil(t, newCut([]byte(body), rulefile.APIOpenAI, "/v1/chat/completions"), body)
	}
	assert.Nil(t, newCut([]byte(`{"a":1}`), rulefile.APIBedrock, "/model/a/invoke"), "nobody knows where a bound goes")
	assert.Nil(t, newCut([]byte(`{"max_tokens":null}`), rulefile.APIOpenAI, "/v1/other"), "no bound, and no place for one")
}

// TestModelIn: the models that paths name.
func TestModelIn(t *testing.T) {
	for path, want := range map[string]string{
		"/v1beta/models/gemini-pro:streamGenerateContent": "gemini-pro", "/v1/projects/p/models/g:predict": "g", "/v1beta/models": "", "/models/": "",
	} {
		assert.Equal(t, want, modelIn(rulefile.APIGemini, path), path)
	}
	assert.Equal(t, "anthropic.claude-3", modelIn(rulefile.APIBedrock, "/model/anthropic.claude-3/converse"))
	assert.Empty(t, modelIn(rulefile.APIOpenAI, "/model/a/b"))
}
