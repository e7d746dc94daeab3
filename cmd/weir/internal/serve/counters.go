package serve

import (
	"log/slog"
	"sync/atomic"

	"github.com/weir-go/weir/engine"
)

// counters is what became of the requests. An upstream failure is an admitted
// request that the upstream did not serve; it is never a refused one.
type counters struct {
	allowed, refused, upstreamFailures atomic.Uint64
}

// summary returns the numbers for the log. Evictions are there only if there
// were any, because they mean that too much was let through.
func (c *counters) summary(stats engine.Stats) []slog.Attr {
	allowed, refused := c.allowed.Load(), c.refused.Load()
	attrs := []slog.Attr{
		slog.Uint64("requests", allowed+refused),
		slog.Uint64("allowed", allowed),
		slog.Uint64("refused", refused),
		slog.Uint64("upstream_failures", c.upstreamFailures.Load()),
	}
	if stats.Evictions > 0 {
		attrs = append(attrs,
			slog.Uint64("evictions", stats.Evictions),
			slog.Uint64("forgiven_tokens", stats.Forgiven),
			slog.String("hint", "keys were forgotten for want of room: raise --max-keys"))
	}
	return attrs
}
