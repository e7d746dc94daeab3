package overshoot

import (
	"context"
	"time"
)

type periodic struct {
	stop     context.CancelFunc
	done     chan struct{}
	failures int
}

// settleEvery calls settle once per interval, and first after offset plus one interval. Nodes with different offsets do
// not settle at the same moment.
func settleEvery(interval, offset time.Duration, settle func(context.Context) error) *periodic {
	ctx, stop := context.WithCancel(context.Background())
	e := &periodic{stop: stop, done: make(chan struct{})}
	go e.run(ctx, interval, offset, settle)
	return e
}

func (e *periodic) run(ctx context.Context, interval, offset time.Duration, settle func(context.Context) error) {
	defer close(e.done)
	select {
	case <-ctx.Done():
		return
	case <-time.After(offset):
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := settle(ctx); err != nil && ctx.Err() == nil {
			e.failures++
		}
	}
}

func (e *periodic) close() int {
	e.stop()
	<-e.done
	return e.failures
}
