// Package overshoot measures how many tokens several nodes admit in total if they share a limit, with real processes,
// one real redis-server and one key. Requests are sent at fixed times, which do not depend on the answers. It compares
// the two modes of package redislimit with a common hybrid, in which each node counts locally, and adds its counts to
// the store later.
package overshoot
