// Package rules compiles the rules of a file to the limits of package httplimit. It is the one place that says what
// a rule's key, cost, tiers and refunds mean for a request: weir serve, check and replay call it, and suggest searches
// among requests that a replay has put to it.
package rules
