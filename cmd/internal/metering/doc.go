// Package metering makes requests cost what their answers report: the tokens of a language model, or any other number.
//
// A [Meter] is a rule of that kind. [Meters.Read] reads the body of a request before the limits decide (request.go). It
// determines how many tokens each rule holds ([Meter.Estimate]). The writer of an admitted request (answer.go) passes
// the answer on unchanged and unbuffered, and also reads the usage in it (package usage). The held tokens are settled
// at the event that has the usage, which comes before the end of the answer. Without such an event, the rule's policy
// decides (settle.go). [Refuse] and [Meters.WriteFields] answer in the form of the API (refusal.go). watch.go and
// metrics.go are for the live page and the metrics.
//
// Bodies are read only to count, and are neither kept nor logged.
package metering
