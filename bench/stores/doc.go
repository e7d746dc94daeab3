// Package stores measures limiters that keep their state in Redis beside each other: redislimit, strict and leased,
// go-redis/redis_rate, throttled and ulule/limiter.
package stores
