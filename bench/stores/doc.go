// Package stores compares limiters that keep their state in Redis: redislimit, strict and leased, go-redis/redis_rate,
// throttled and ulule/limiter.
package stores
