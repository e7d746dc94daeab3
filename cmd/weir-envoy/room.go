package main

import (
	"context"
	"time"

	"github.com/weir-go/weir/cmd/internal/envoy"
)

// lookAtRoom is the interval between two checks for full tables. The log may report a full table at each check.
const lookAtRoom = time.Minute

// A roomWatch logs whether counters have found no room since its last check.
type roomWatch struct {
	*program
	before map[string]envoy.Table
}

func (w *roomWatch) run(ctx context.Context) {
	ticker := time.NewTicker(lookAtRoom)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.look()
		}
	}
}

func (w *roomWatch) look() {
	now := map[string]envoy.Table{}
	for _, t := range w.service.Tables() {
		now[t.Name] = t
		before := w.before[t.Name]
		if t.Evictions < before.Evictions || t.NoRoom < before.NoRoom { // a new table with the same name
			before = envoy.Table{}
		}
		evicted, refused := t.Evictions-before.Evictions, t.NoRoom-before.NoRoom
		if evicted > 0 || refused > 0 {
			w.log.Warn("a table is full: raise MAX_KEYS", "table", t.Name, "max_keys", w.MaxKeys,
				"counters_forgotten", evicted, "requests_refused", refused)
		}
	}
	w.before = now
}
