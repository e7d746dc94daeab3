// Package fit finds the rate limit that explains a log of requests and decisions: which kind, how much, how long. It is
// a pure function of the log.
//
// Every kind of limit that package check has a model of is replayed over the log with many numbers, and at many phases
// if its windows are aligned. A decision that the model would not have made is a misfit. The limit with the fewest
// wins. How many more the best limit of another kind has says how sure that is.
package fit
