// Package metering makes requests cost what their answers report: the tokens of a language model, or any other number.
//
// A [Meter] is a rule with such a cost. [Meters.Read] reads the body of a request before the limits decide
// (request.go). It determines how many tokens each rule holds ([Meter.Estimate]). The http.ResponseWriter of an
// admitted request (answer.go) passes on the answer unchanged and unbuffered, and also reads the usage in it (package
// usage). The held tokens are settled when the event with the usage arrives, before the end of the answer. If there is
// no such event, the rule says what the request costs (settle.go). [Refuse] and [Meters.WriteFields] answer in the form
// of the API (refusal.go). watch.go has the numbers for the live page, and metrics.go has the metrics.
//
// Bodies are read only to count tokens, and are neither kept nor logged.
package metering
