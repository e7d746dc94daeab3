// Package fit finds the rate limit that explains a log of requests and decisions: its kind, its limit and its period.
// The result depends only on the log.
//
// The package replays the log against every kind of limit that package check models. It tries many numbers for each
// kind, and many phases if the windows of the kind are aligned. A decision that the model would not have made is a
// misfit. The limit with the fewest misfits wins. The more misfits the best limit of any other kind has, the more
// certain the result is.
package fit
