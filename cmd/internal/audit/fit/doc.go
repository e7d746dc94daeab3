// Package fit finds the rate limit that explains a log of requests and decisions: its kind, its limit and its period.
// The result depends only on the log.
//
// It replays the log against every kind of limit of package check, with many numbers. For aligned windows, it also
// tries many phases. A misfit is a decision that the limit would not have made. The limit with the fewest misfits wins.
// The more misfits the best limit of any other kind has, the more certain the result is.
package fit
