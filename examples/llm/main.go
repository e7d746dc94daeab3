// llm is a server that implements the APIs of language models without a model: the APIs of OpenAI, Anthropic, Gemini
// and Ollama, including streams. It answers with the number of words that the request allows, and reports the cost of
// the words. The name of the model in the request selects the behavior:
//
//	tiny    as a model would
//	slow    a word each 200 ms
//	silent  without a usage
//	abort   breaks off in the middle
//	error   answers 500
//
// Requests for other models are errors.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"time"
)

type object = map[string]any

func main() {
	listen := flag.String("listen", "127.0.0.1:3000", "where to listen")
	flag.Parse()
	log.Fatal(http.ListenAndServe(*listen, handler()))
}

// handler returns the server.
func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		write(w, object{"object": "list", "data": []object{{"id": "tiny", "object": "model"}}})
	})
	for pattern, speak := range map[string]func(*answer){
		"POST /v1/chat/completions": openAI, "POST /v1/responses": responses, "POST /v1/messages": anthropic,
		"POST /v1beta/models/{method}": gemini, "POST /api/chat": ollama, "POST /v1/embeddings": embeddings,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if a := read(w, r); a != nil {
				speak(a)
			}
		})
	}
	return mux
}

// An answer contains a request and the state of its answer.
type answer struct {
	http.ResponseWriter
	model  string
	stream bool
	asked  bool // the request asks for the usage of a stream
	input  int  // tokens in the prompt
	words  int  // words in the answer; each is one token
}

// read reads a request. If the request has no valid model, read answers with an error and returns nil.
func read(w http.ResponseWriter, r *http.Request) *answer {
	var q struct {
		Model         string
		Stream        *bool
		MaxTokens     int `json:"max_tokens"`
		MaxCompletion int `json:"max_completion_tokens"`
		MaxOutput     int `json:"max_output_tokens"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Options struct {
			NumPredict int `json:"num_predict"`
		}
		GenerationConfig struct{ MaxOutputTokens int }
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return nil
	}
	a := &answer{ResponseWriter: w, model: q.Model, asked: q.StreamOptions.IncludeUsage, input: len(body)/4 + 1, words: 20}
	a.stream = q.Stream != nil && *q.Stream || q.Stream == nil && r.URL.Path == "/api/chat"
	if method := r.PathValue("method"); method != "" {
		model, name, _ := strings.Cut(method, ":")
		a.model, a.stream = model, name == "streamGenerateContent"
	}
	for _, bound := range []int{q.MaxTokens, q.MaxCompletion, q.MaxOutput, q.Options.NumPredict, q.GenerationConfig.MaxOutputTokens} {
		if bound > 0 {
			a.words = min(bound, 1000)
		}
	}
	switch a.model {
	case "tiny", "slow", "silent", "abort":
		return a
	case "error":
		fail(w, http.StatusInternalServerError, "the model has failed")
	default:
		fail(w, http.StatusNotFound, fmt.Sprintf("the model %q does not exist", a.model))
	}
	return nil
}

func write(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // an error means that the client has closed the connection
}

func fail(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"error": object{"message": text, "type": "invalid_request_error"}})
}

// The method each calls the function send with every word. It pauses and ends as the chosen model does.
func (a *answer) each(send func(word string)) {
	for i := range a.words {
		if a.model == "slow" {
			time.Sleep(200 * time.Millisecond)
		}
		if a.model == "abort" && i >= a.words/2 {
			panic(http.ErrAbortHandler)
		}
		send(fmt.Sprintf("word%d ", i))
	}
}

// text returns all words as one text.
func (a *answer) text() string {
	var b strings.Builder
	a.each(func(word string) { b.WriteString(word) })
	return b.String()
}

// events starts a stream, and returns a function that sends one event of it.
func (a *answer) events(mediaType string) func(format string, args ...any) {
	a.Header().Set("Content-Type", mediaType)
	return func(format string, args ...any) {
		for i, arg := range args {
			if value, is := arg.(object); is {
				text, _ := json.Marshal(value)
				args[i] = text
			}
		}
		fmt.Fprintf(a, format, args...)
		_ = http.NewResponseController(a.ResponseWriter).Flush()
	}
}

// usage returns the token counts under the given names, or nil if the model reports none.
func (a *answer) usage(input, output, total string) object {
	if a.model == "silent" {
		return nil
	}
	u := object{input: a.input, output: a.words}
	if total != "" {
		u[total] = a.input + a.words
	}
	return u
}

func openAI(a *answer) {
	usage := a.usage("prompt_tokens", "completion_tokens", "total_tokens")
	if !a.stream {
		write(a, object{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": a.model, "usage": usage, "choices": []object{
			{"index": 0, "finish_reason": "stop", "message": object{"role": "assistant", "content": a.text()}}}})
		return
	}
	send := a.events("text/event-stream")
	chunk := func(choices ...object) object {
		return object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": a.model, "choices": choices}
	}
	a.each(func(word string) {
		send("data: %s\n\n", chunk(object{"index": 0, "finish_reason": nil, "delta": object{"role": "assistant", "content": word}}))
	})
	send("data: %s\n\n", chunk(object{"index": 0, "finish_reason": "stop", "delta": object{}}))
	if a.asked && usage != nil {
		last := chunk()
		last["choices"], last["usage"] = []object{}, usage
		send("data: %s\n\n", last)
	}
	send("data: [DONE]\n\n")
}

func responses(a *answer) {
	usage := a.usage("input_tokens", "output_tokens", "total_tokens")
	response := func(status, text string) object {
		return object{"id": "resp_1", "object": "response", "created_at": 1, "model": a.model, "status": status, "usage": usage,
			"output": []object{{"id": "msg_1", "type": "message", "role": "assistant", "status": status,
				"content": []object{{"type": "output_text", "text": text, "annotations": []object{}}}}}}
	}
	if !a.stream {
		write(a, response("completed", a.text()))
		return
	}
	send, all, n := a.events("text/event-stream"), "", 0
	event := func(kind string, value object) {
		value["type"], value["sequence_number"] = kind, n
		n++
		send("event: "+kind+"\ndata: %s\n\n", value)
	}
	begun := response("in_progress", "")
	begun["usage"], begun["output"] = nil, []object{}
	event("response.created", object{"response": begun})
	a.each(func(word string) {
		all += word
		event("response.output_text.delta", object{"item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": word})
	})
	event("response.completed", object{"response": response("completed", all)})
}

func anthropic(a *answer) {
	usage := a.usage("input_tokens", "output_tokens", "")
	if !a.stream {
		write(a, object{"id": "msg_1", "type": "message", "role": "assistant", "model": a.model, "stop_reason": "end_turn", "usage": usage,
			"content": []object{{"type": "text", "text": a.text()}}})
		return
	}
	send := a.events("text/event-stream")
	event := func(kind string, value object) {
		value["type"] = kind
		send("event: "+kind+"\ndata: %s\n\n", value)
	}
	begun := object{"input_tokens": a.input, "output_tokens": 1}
	if usage == nil {
		begun = nil
	}
	event("message_start", object{"message": object{"id": "msg_1", "type": "message", "role": "assistant", "model": a.model,
		"content": []object{}, "usage": begun}})
	event("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}})
	a.each(func(word string) {
		event("content_block_delta", object{"index": 0, "delta": object{"type": "text_delta", "text": word}})
	})
	event("content_block_stop", object{"index": 0})
	event("message_delta", object{"delta": object{"stop_reason": "end_turn"}, "usage": usage})
	event("message_stop", object{})
}

func gemini(a *answer) {
	usage := a.usage("promptTokenCount", "candidatesTokenCount", "totalTokenCount")
	part := func(text string, more object) object {
		more["content"] = object{"role": "model", "parts": []object{{"text": text}}}
		return object{"candidates": []object{more}, "usageMetadata": usage}
	}
	if !a.stream {
		write(a, part(a.text(), object{"finishReason": "STOP"}))
		return
	}
	send := a.events("text/event-stream")
	a.each(func(word string) { send("data: %s\r\n\r\n", part(word, object{})) })
	send("data: %s\r\n\r\n", part("", object{"finishReason": "STOP"}))
}

func ollama(a *answer) {
	part := func(text string, more object) object {
		if more == nil {
			more = object{}
		}
		more["model"], more["created_at"], more["done"] = a.model, "2026-01-01T00:00:00Z", len(more) > 0
		more["message"] = object{"role": "assistant", "content": text}
		return more
	}
	last := a.usage("prompt_eval_count", "eval_count", "")
	if last == nil {
		last = object{"done_reason": "stop"}
	}
	if !a.stream {
		write(a, part(a.text(), last))
		return
	}
	send := a.events("application/x-ndjson")
	a.each(func(word string) { send("%s\n", part(word, nil)) })
	send("%s\n", part("", last))
}

func embeddings(a *answer) {
	write(a, object{"object": "list", "model": a.model, "usage": object{"prompt_tokens": a.input, "total_tokens": a.input},
		"data": []object{{"object": "embedding", "index": 0, "embedding": []float64{0.5, -0.5}}}})
}
