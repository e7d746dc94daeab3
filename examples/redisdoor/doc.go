// Package redisdoor shows how a program limits by `weir serve` with a client for Redis, here go-redis: see its test. A
// program in Go on one machine need not: it calls the engine. docs/redis-door.md describes the commands.
package redisdoor
