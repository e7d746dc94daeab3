// Package usage reads what a request to a language model has cost, from bodies and streams of the APIs of OpenAI (chat,
// completions, embeddings, responses), Anthropic, Gemini, Ollama and Bedrock. For any other API, it reads the number at
// the path of a JSON field. It also estimates the cost in advance, from the request's body ([Request]).
//
// A [Scanner] gets a copy of a stream, which it neither delays nor changes. It reads JSON byte by byte (json.go), so
// the stream may be cut anywhere, and it uses at most [Memory] bytes. frames.go finds the documents in server-sent
// events, lines of JSON, one document, or Amazon's binary event stream. A separate goroutine decompresses (decode.go).
//
// A server's usage is not trusted: a field that is not a whole number from 0 to [MaxField] counts as absent. Only
// counts and the name of a model are kept or logged.
package usage
