// Package overshoot measures how many tokens several nodes admit in total if they share a limit. It uses real
// processes, one real redis-server and one key. The requests are sent at fixed times, which do not depend on the
// answers.
//
// It compares the two modes of package redislimit with a common hybrid algorithm. In this hybrid, each node counts
// locally, and adds its counts to the store later. The hybrid is implemented in this package.
package overshoot
