package serve

import (
	"log/slog"
	"sync/atomic"
)

// counters count requests, decisions for other proxies included. An upstream failure is an admitted request that the
// upstream did not serve; a refused one is never counted as a failure.
type counters struct {
	requests, allowed, upstreamFailures atomic.Uint64
}

// summary returns the numbers for the log.
func (c *counters) summary() []slog.Attr {
	allowed := c.allowed.Load() // first: a request is counted before it is allowed
	requests := c.requests.Load()
	return []slog.Attr{
		slog.Uint64("requests", requests),
		slog.Uint64("allowed", allowed),
		slog.Uint64("refused", requests-allowed),
		slog.Uint64("upstream_failures", c.upstreamFailures.Load()),
	}
}
