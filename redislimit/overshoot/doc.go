// Package overshoot measures how many tokens nodes that share a limit admit together. It uses real processes, one real
// redis-server, one key, and requests that are sent at fixed times, independent of the answers.
//
// It compares the two modes of package redislimit with the common hybrid, which counts locally and settles later. The
// hybrid is implemented in this package.
package overshoot
