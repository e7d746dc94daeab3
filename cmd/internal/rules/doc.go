// Package rules compiles the rules of a file to limits of package httplimit. Only this package defines what a rule's
// key, cost, tiers and refunds mean for a request. weir serve, check and replay use it. weir suggest uses requests that
// a replay has read with it.
package rules
