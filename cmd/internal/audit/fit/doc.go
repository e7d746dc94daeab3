// Package fit finds the rate limit that explains a log of requests and decisions: its kind, its limit and its period.
// The result depends only on the log.
//
// It replays the log against every kind of limit of package check, with many numbers and, for aligned windows, many
// phases. A decision that the model would not have made is a misfit. The limit with the fewest misfits wins; the more
// misfits the best limit of another kind has, the more certain the result is.
package fit
