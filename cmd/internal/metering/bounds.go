package metering

import (
	"strings"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/usage"
)

// These variables say in which fields the requests of each API can bound the answer.
var (
	boundsOfChat      = &usage.Bounds{Fields: [][]string{{"max_completion_tokens"}, {"max_tokens"}}}
	boundsOfMessages  = &usage.Bounds{Fields: [][]string{{"max_tokens"}}} // also of OpenAI's completions
	boundsOfComplete  = &usage.Bounds{Fields: [][]string{{"max_tokens_to_sample"}}}
	boundsOfResponses = &usage.Bounds{Fields: [][]string{{"max_output_tokens"}}}
	boundsOfGemini    = &usage.Bounds{
		Object: []string{"generationConfig", "generation_config"}, Fields: [][]string{{"maxOutputTokens", "max_output_tokens"}},
	}
	boundsOfOllama   = &usage.Bounds{Object: []string{"options"}, Fields: [][]string{{"num_predict"}}}
	boundsOfConverse = &usage.Bounds{Object: []string{"inferenceConfig"}, Fields: [][]string{{"maxTokens"}}}
	boundsOfBatch    = &usage.Bounds{Batch: true}
)

// boundsAt has the bounds of each API by the end of the path, longer ends first.
var boundsAt = map[rulefile.API][]struct {
	suffix string
	bounds *usage.Bounds
}{
	rulefile.APIOpenAI: {
		{"/chat/completions", boundsOfChat}, {"/completions", boundsOfMessages}, {"/responses", boundsOfResponses},
	},
	rulefile.APIAnthropic: {
		{"/messages/batches", boundsOfBatch}, {"/messages", boundsOfMessages}, {"/complete", boundsOfComplete},
		{":rawPredict", boundsOfMessages}, {":streamRawPredict", boundsOfMessages},
	},
	rulefile.APIGemini:  {{":generateContent", boundsOfGemini}, {":streamGenerateContent", boundsOfGemini}},
	rulefile.APIOllama:  {{"/api/generate", boundsOfOllama}, {"/api/chat", boundsOfOllama}},
	rulefile.APIBedrock: {{"/converse", boundsOfConverse}, {"/converse-stream", boundsOfConverse}},
}

// boundsOf returns the bounds that a request to an API can have at a path, or nil if they are unknown.
func boundsOf(api rulefile.API, path string) *usage.Bounds {
	for _, entry := range boundsAt[api] {
		if strings.HasSuffix(path, entry.suffix) {
			return entry.bounds
		}
	}
	// At Bedrock, the form of the body depends on the model. A region can precede the name of the model.
	model, _ := modelIn(api, path)
	if _, name, ok := strings.Cut(model, "."); api == rulefile.APIBedrock && ok &&
		(strings.HasPrefix(model, "anthropic.") || strings.HasPrefix(name, "anthropic.")) &&
		(strings.HasSuffix(path, "/invoke") || strings.HasSuffix(path, "/invoke-with-response-stream")) {
		return boundsOfMessages
	}
	return nil
}
