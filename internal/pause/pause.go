// Package pause waits.
package pause

import (
	"context"
	"time"
)

// For waits for a time or until the context is done, and then returns the context's error.
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
