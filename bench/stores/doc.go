// Package stores compares limiters with state in Redis: redislimit in its strict and leased modes, go-redis/redis_rate,
// throttled and ulule/limiter.
package stores
