// Package fit finds the rate limit that explains a log of requests and decisions: its kind, its limit and its period.
// It is a pure function of the log.
//
// It replays the log against every kind of limit that package check models, with many numbers, and at many phases if
// its windows are aligned. A decision that the model would not have made is a misfit. The limit with the fewest misfits
// wins. The more misfits the best limit of another kind has, the more certain is the result.
package fit
