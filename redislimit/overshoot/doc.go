// Package overshoot measures how many tokens several nodes admit in total if they share a limit. It uses real
// processes, one real redis-server and one key. Requests are sent at fixed times, which do not depend on the answers.
// The two modes of package redislimit are compared with a common hybrid, in which each node counts locally and adds its
// counts to the store later.
package overshoot
