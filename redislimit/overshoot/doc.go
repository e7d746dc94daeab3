// Package overshoot measures how many tokens several nodes admit in total if they share a limit. It uses real
// processes, one real redis-server, one key, and requests that are sent at fixed times, independent of the answers.
//
// It compares the two modes of package redislimit with a common hybrid, in which each node counts locally and adds its
// counts to the store later. The hybrid is implemented in this package.
package overshoot
