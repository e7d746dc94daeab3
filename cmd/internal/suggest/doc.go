// Package suggest finds limits that would have refused at most a given share of a rule's keys, or only keys that ask
// for far more than all others.
//
// It tries limits: the engine's algorithms decide every request of the log for every limit that is tried. These limits
// are round numbers of tokens in a period, with a burst of the same number. That leaves one number to find for each
// period, and makes the answer stable. If rate and burst were both free, many pairs would refuse the same keys, and a
// few requests would decide which pair looks best.
//
// Keys are counted, not requests, because a single crawler can make any share of the requests, and makes more the
// longer a log is.
//
// Each rule is considered separately. Package replay has noted which requests its middleware counts under the rule, by
// which key and at which cost. For a single limit, a middleware only takes, and gives back if the answer says so. This
// package replays the same steps.
package suggest
