package budget

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/weir-go/weir/cmd/internal/usage"
)

// pitfalls has the number of the pitfall for each answer in the corpus. The answer is found by the beginning of its
// file's name. The last line is for all other files, which are about cut-off answers and line ends.
var pitfalls = []struct{ filePrefix, pitfall string }{
	{"openai-chat-no-done", "17"}, {"openai-chat-no-usage", "19"}, {"openai-chat-usage-in-text", "29"}, {"openai-responses", "23"},
	{"anthropic-error", "18"}, {"anthropic", "21"}, {"gemini", "22"}, {"ollama", "24"}, {"bedrock", "25"}, {"", "26"},
}

func corpus() (checks []check) {
	for _, f := range usage.Corpus() {
		for _, p := range pitfalls {
			if strings.HasPrefix(f.File, p.filePrefix) {
				checks = append(checks, check{p.pitfall, f.File, fixture(f)})
				break
			}
		}
	}
	return checks
}

// fixture returns a check with one answer. The check repeats the answer until its cost can be measured.
func fixture(f *usage.Fixture) func(context.Context, *auditor) (string, error) {
	// The numbers of held and charged tokens must differ, so that the check can find out which number the gateway
	// counts.
	total, times, bound := int(f.Reported.Total), 20, 16
	if f.Final {
		times, bound = max(smallBudget*6/10/max(total, 1), 1), int(f.Reported.Output)+150
	}
	return checkCost(func(ctx context.Context, k *key) (span, error) {
		number := k.model.add(fixedPlay(f.ContentType, string(f.Body)))
		for i := range times {
			got := k.do(ctx, k.fixtureRequest(f, number, bound))
			switch {
			case got.passed:
			case i == 0:
				return span{}, skip(fmt.Sprintf("%s %s is not passed on: %v", http.MethodPost, f.Path, got))
			default:
				return span{}, fault(fmt.Sprintf("after %d answers that cost %d tokens of %d nothing is left", i, i*total, smallBudget))
			}
		}
		switch {
		case f.Reported.NoInput: // the input is estimated
			return span{times * total, times * (total + 4*promptTokens)}, nil
		case f.Final:
			return exactly(times * total), nil
		case !f.Known && strings.Contains(string(f.Body), "xception") || strings.Contains(f.File, "failed"):
			return span{0, smallBudget}, nil // the answer failed without a usage
		}
		return span{max(times*total, 5*times), smallBudget}, nil // the known part, or an estimate from the text
	})
}

// fixtureRequest returns a request to the API that gives the answer of a fixture.
func (k *key) fixtureRequest(f *usage.Fixture, number, bound int) gatewayRequest {
	text, streams := mark+strconv.Itoa(number), !strings.HasPrefix(f.ContentType, jsonType)
	path := strings.Replace(f.Path, "/tiny", "/"+k.Model, 1)
	body := object{"model": k.Model}
	messages := []object{{"role": "user", "content": text}}
	switch {
	case f.API == "gemini":
		body = object{"contents": []object{{"role": "user", "parts": []object{{"text": text}}}}, "generationConfig": object{"maxOutputTokens": bound}}
		if strings.HasPrefix(f.ContentType, sseType) {
			path += "?alt=sse"
		}
	case f.API == "bedrock":
		body = object{"messages": []object{{"role": "user", "content": []object{{"text": text}}}}, "inferenceConfig": object{"maxTokens": bound}}
	case strings.HasSuffix(path, "/embeddings"), strings.HasSuffix(path, "/embed"):
		body["input"] = text
	case f.API == "ollama":
		body["options"], body["stream"] = object{"num_predict": bound}, streams
		if body["messages"] = messages; strings.HasSuffix(path, "/generate") {
			delete(body, "messages")
			body["prompt"] = text
		}
	case strings.HasSuffix(path, "/responses"):
		body["input"], body["max_output_tokens"], body["stream"] = text, bound, streams
	case strings.HasSuffix(path, "/completions") && !strings.HasSuffix(path, "/chat/completions"):
		body["prompt"], body["max_tokens"] = text, bound
	default:
		if body["messages"], body["max_tokens"], body["stream"] = messages, bound, streams; f.UsageChunk {
			body["stream_options"] = object{"include_usage": true}
		}
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(err) // this package made the value
	}
	return gatewayRequest{method: http.MethodPost, path: path, body: string(encoded), number: number}
}
