// Package metering makes requests cost what their answers report: the tokens of a language model, or any other number.
//
// A [Meter] is a rule whose cost comes from the answer. A request passes through these steps:
//
//   - [Meters.Read] reads its body before the limits decide (request.go). The body determines how many tokens each rule
//     holds ([Meter.Estimate]).
//   - If the request is admitted, its http.ResponseWriter passes on the answer unchanged and unbuffered, and reads the
//     usage (answer.go, package usage).
//   - The event with the usage settles the held tokens, before the end of the answer. If there is no usage, the rule
//     says what the request costs (settle.go).
//   - If the request is refused, [Refuse] and [Meters.WriteFields] answer in the form of the API (refusal.go).
//
// The numbers for the live page are in watch.go, and the metrics in metrics.go.
//
// Bodies are read only to count tokens, and are neither kept nor logged.
package metering
