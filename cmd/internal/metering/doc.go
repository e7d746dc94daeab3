// Package metering makes requests cost what their answers report: the tokens of a language model, or any other number.
//
// A [Meter] is a rule with such a cost. [Meters.Read] reads the body of a request before the limits decide
// (request.go), which determines how many tokens each rule holds ([Meter.Estimate]). The http.ResponseWriter of an
// admitted request passes on the answer unchanged and unbuffered, and reads its usage (answer.go, package usage). The
// event with the usage settles the held tokens, before the end of the answer; without it, the rule says what the
// request costs (settle.go). [Refuse] and [Meters.WriteFields] answer in the form of the API (refusal.go). watch.go has
// the numbers for the live page, and metrics.go the metrics.
//
// Bodies are read only to count tokens, and are neither kept nor logged.
package metering
