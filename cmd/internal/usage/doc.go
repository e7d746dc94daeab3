// Package usage reads what a request to a language model turns out to cost: from the bodies and streams of OpenAI's
// API (chat, completions, embeddings, responses), Anthropic's, Gemini's, Ollama's and Bedrock's, and of any other API
// by a path. It also estimates the cost before the request, from its body ([Request]).
//
// A [Scanner] is written to next to a stream, which it neither delays nor changes. It reads JSON byte by byte
// (json.go), so it needs no whole line and no whole event: its memory does not depend on what is written (at most
// [Memory] bytes), and the stream may be cut anywhere. Frames (frames.go) are server-sent events, lines of JSON, one
// document, or Amazon's binary event stream. Compressed streams are decompressed on the side (decode.go).
//
// What a server says of its usage is not trusted: a field is a whole number from 0 to [MaxField], or absent. Nothing
// that is read here is kept or logged but counts and the name of a model.
package usage
