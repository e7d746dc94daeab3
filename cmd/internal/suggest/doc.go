// Package suggest finds limits that would have refused at most a given share of a rule's keys, or only keys that ask
// for far more than all other keys.
//
// It tries limits: for every limit that it tries, the engine's algorithm decides every request of the log. These limits
// are round numbers of tokens per period, and the burst is the same number. So there is only one number to find for
// each period, and the answer is stable. If rate and burst were both free, many pairs would refuse the same keys, and a
// few requests would decide which pair looks best.
//
// Shares are shares of keys and not of requests. The reason is that a single crawler can make any share of the
// requests, and that its number of requests grows with the length of the log.
//
// Each rule is considered separately. Package replay has noted which requests its middleware counts under the rule,
// with their keys and costs. For a single limit, a middleware only takes tokens, and gives them back if the rule
// refunds the answer. This package does the same.
package suggest
