// Package rules compiles the rules of a file to limits of package httplimit. It is the only place that defines what the
// key, the cost, the tiers and the refunds of a rule mean for a request. weir serve, weir check and weir replay use it.
// weir suggest uses requests that a replay has read with it.
package rules
