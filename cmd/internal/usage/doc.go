// Package usage reads what a request to a language model has cost. It reads bodies and streams of the APIs of OpenAI
// (chat, completions, embeddings, responses), Anthropic, Gemini, Ollama and Bedrock. For any other API, it reads the
// number at the path of a JSON field. It also estimates the cost in advance, from the body of the request ([Request]).
//
// A [Scanner] gets a copy of a stream, which it neither delays nor changes. It reads JSON byte by byte (json.go), so it
// does not need a complete line or event at a time. It uses at most [Memory] bytes, no matter what is written, and the
// stream may be cut anywhere. frames.go finds the documents in server-sent events, in lines of JSON, in one document,
// and in Amazon's binary event stream. Compressed streams are decompressed in a separate goroutine (decode.go).
//
// A server's usage is not trusted: a field that is not a whole number from 0 to [MaxField] counts as absent. Only
// counts and the name of a model are kept or logged.
package usage
