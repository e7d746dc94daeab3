// Package usage reads what a request to a language model has cost. It reads bodies and streams of the APIs of OpenAI
// (chat, completions, embeddings, responses), Anthropic, Gemini, Ollama and Bedrock. For any other API, it reads the
// number in one JSON field at a given path. From the body of a request, it also estimates the cost in advance
// ([Request]).
//
// A [Scanner] gets a copy of a stream, and neither delays nor changes the stream. It reads JSON byte by byte (json.go),
// so the stream may be cut anywhere. It uses at most [Memory] bytes.
//
// frames.go finds the JSON documents in server-sent events, in lines of JSON, in one document, or in Amazon's binary
// event stream. Compressed streams are decompressed by a separate goroutine (decode.go).
//
// The usage from a server is not trusted. A field counts as absent if it is not a whole number from 0 to [MaxField].
// Only counts and the name of a model are stored or logged.
package usage
