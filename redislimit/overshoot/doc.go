// Package overshoot measures how much nodes that share a limit admit together. It uses real processes, one real
// redis-server, one key, and load that comes at fixed times whatever the answers are.
//
// It compares the two modes of package redislimit with the common hybrid, counting locally and settling later,
// which is written here.
package overshoot
