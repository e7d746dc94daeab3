package main

import (
	"context"
	"time"

	"github.com/weir-go/weir/cmd/internal/envoy"
)

// roomCheckInterval is the interval between two checks for full tables. The log may report a full table at each check.
const roomCheckInterval = time.Minute

// A roomWatch logs whether counters have found no room since its last check.
type roomWatch struct {
	*program
	previous map[string]envoy.Table
}

func (w *roomWatch) run(ctx context.Context) {
	ticker := time.NewTicker(roomCheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.check()
		}
	}
}

func (w *roomWatch) check() {
	current := map[string]envoy.Table{}
	for _, t := range w.service.Tables() {
		current[t.Name] = t
		previous := w.previous[t.Name]
		if t.Evictions < previous.Evictions || t.NoRoom < previous.NoRoom { // a new table with the same name
			previous = envoy.Table{}
		}
		evicted, refused := t.Evictions-previous.Evictions, t.NoRoom-previous.NoRoom
		if evicted > 0 || refused > 0 {
			w.log.Warn("a table is full: raise MAX_KEYS", "table", t.Name, "max_keys", w.MaxKeys,
				"counters_forgotten", evicted, "requests_refused", refused)
		}
	}
	w.previous = current
}
