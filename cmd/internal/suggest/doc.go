// Package suggest finds limits for a rule from the requests of a log. A suggested limit would have refused at most a
// given share of the rule's keys, or only keys that ask for far more than all others.
//
// It tries many limits. For each, the engine's algorithm decides every request of the log. The limits are round numbers
// of tokens per period, with a burst of the same number. With one number per period, the answer is stable. If rate and
// burst could both vary, many pairs would refuse the same keys, and a few requests would decide which pair looks best.
//
// A share is a share of the keys, not of the requests. A single crawler can make any share of the requests, and makes
// more of them in a longer log.
//
// Each rule is considered separately. Package replay has noted the requests that its middleware counts under the rule,
// with their keys and costs. For each of them, this package takes tokens like a middleware with a single limit. It
// gives them back if the rule refunds the answer.
package suggest
