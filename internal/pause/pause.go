// Package pause waits for a duration or until a context is done.
package pause

import (
	"context"
	"time"
)

// For waits for the duration d. If the context is done earlier, For returns the context's error at once.
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
