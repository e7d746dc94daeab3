package zone

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// A relay passes log records of a store's connection to the active configuration's log, because the connection outlives
// configurations. A logger that is derived by With would keep the old log, but package redislimit derives no logger.
// The methods of a relay are safe for concurrent use.
type relay struct{ logger atomic.Pointer[slog.Logger] }

// Package slog calls Enabled and the other methods.
func (r *relay) Enabled(ctx context.Context, level slog.Level) bool {
	return r.logger.Load().Handler().Enabled(ctx, level)
}

func (r *relay) Handle(ctx context.Context, record slog.Record) error {
	return r.logger.Load().Handler().Handle(ctx, record)
}

func (r *relay) WithAttrs(attrs []slog.Attr) slog.Handler {
	return r.logger.Load().Handler().WithAttrs(attrs)
}

func (r *relay) WithGroup(name string) slog.Handler { return r.logger.Load().Handler().WithGroup(name) }
