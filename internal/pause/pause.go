// Package pause waits for a time or for the end of a context.
package pause

import (
	"context"
	"time"
)

// For waits for a time. If the context is done before that, For returns the context's error at once.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
