// Package stores compares limiters that keep their state in Redis: redislimit in its strict mode and in its leased
// mode, go-redis/redis_rate, throttled and ulule/limiter.
package stores
