// Package suggest finds limits that would have refused at most a given share of a rule's keys, or only keys that ask
// for far more than all others.
//
// It tries limits: for each, the engine's algorithm decides every request of the log. The limits are round numbers of
// tokens per period, with the same burst. With one number per period the answer is stable. If rate and burst were both
// free, many pairs would refuse the same keys, and a few requests would decide which looks best.
//
// Shares are shares of keys and not of requests, because a single crawler can make any share of the requests, and makes
// more in a longer log.
//
// Each rule is considered separately. Package replay has noted the requests that its middleware counts under the rule,
// with their keys and costs. As a middleware does for a single limit, this package takes tokens, and gives them back if
// the rule refunds the answer.
package suggest
