package redislimit

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// An eviction is how a store drops keys when its memory is full. A key that it drops owes nothing any more.
type eviction struct {
	isKnown atomic.Bool // or not to be known: the store was asked
	policy  atomic.Pointer[string]
}

// findEviction asks each server of the store once how it evicts, and logs a policy by which what keys owe is lost.
// volatile-ttl drops those keys first that would expire soonest, which owe the least: it is not told.
func (c *Client) findEviction(ctx context.Context) {
	if c.eviction.isKnown.Load() {
		return
	}
	for address, server := range c.redis.Nodes() {
		policy, err := evictionOf(ctx, server)
		if err != nil {
			if _, answered := rueidis.IsRedisErr(err); answered {
				continue // it does not say
			}
			return // the next time
		}
		if policy == "" || policy == "noeviction" || policy == "volatile-ttl" {
			continue
		}
		if c.eviction.policy.Swap(&policy) == nil {
			c.tell(slog.LevelWarn, "the store drops keys when its memory is full, and a key that is dropped has its whole limit again: "+
				"want maxmemory-policy noeviction or volatile-ttl", slog.String("maxmemory-policy", policy), slog.String("server", address))
		}
	}
	c.eviction.isKnown.Store(true)
}

// evictionOf returns the policy by which a server evicts; "" if its memory has no limit. INFO is allowed to more users
// than CONFIG.
func evictionOf(ctx context.Context, server rueidis.Client) (string, error) {
	text, err := server.Do(ctx, server.B().Info().Section("memory").Build()).ToString()
	if err == nil {
		numbers := map[string]string{}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			numbers[name] = value
		}
		if numbers["maxmemory"] == "0" {
			return "", nil
		}
		return numbers["maxmemory_policy"], nil
	}
	if _, answered := rueidis.IsRedisErr(err); !answered {
		return "", err
	}
	said, err := server.Do(ctx, server.B().ConfigGet().Parameter("maxmemory", "maxmemory-policy").Build()).AsStrMap()
	if err != nil || said["maxmemory"] == "0" {
		return "", err
	}
	return said["maxmemory-policy"], nil
}
