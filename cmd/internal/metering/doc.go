// Package metering has requests cost what their answers say: the tokens of a language model, or any other number.
//
// A [Meter] is a rule of that kind. [Meters.Read] reads the body of a request before the limits decide (request.go),
// and from it comes what each rule holds ([Meter.Estimate]). A request that is admitted goes on with a writer
// (answer.go) that passes the answer on unchanged and unbuffered, and reads the usage next to it (package usage). What
// is held is settled at the event that has the usage, which is before the end of the answer, and by the rule's policy
// where there is none (settle.go). [Refuse] and [Meters.WriteFields] answer in the form of the API (refusal.go).
// What the live page and the metrics say is in watch.go and metrics.go.
//
// Bodies are read for counts, and neither kept nor logged.
package metering
