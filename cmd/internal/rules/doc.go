// Package rules compiles the rules of a file to the limits of package httplimit. It is the only place that defines what
// a rule's key, cost, tiers and refunds mean for a request. weir serve, check and replay call it. weir suggest uses
// requests that a replay has read with this package.
package rules
