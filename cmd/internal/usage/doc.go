// Package usage reads what a request to a language model has cost. It reads bodies and streams of OpenAI's API (chat,
// completions, embeddings, responses), Anthropic's, Gemini's, Ollama's and Bedrock's, and of any other API by the path
// of a JSON field. It also estimates the cost in advance, from the body of the request ([Request]).
//
// A [Scanner] gets a copy of a stream, which it neither delays nor changes. It reads JSON byte by byte (json.go), so it
// needs no whole line or event. Its memory is at most [Memory] bytes, whatever is written, and the stream may be cut
// anywhere. Frames (frames.go) are server-sent events, lines of JSON, one document, or Amazon's binary event stream.
// Compressed streams are decompressed on the side (decode.go).
//
// A server's usage is not trusted: a field that is not a whole number from 0 to [MaxField] counts as absent. Only
// counts and the name of a model are kept or logged.
package usage
