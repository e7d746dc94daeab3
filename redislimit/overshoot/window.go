package overshoot

import (
	"context"
	_ "embed"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

//go:embed window.lua
var windowText string

// A windower is one node of the hybrid with fixed windows of one second.
type windower struct {
	client rueidis.Client
	script *rueidis.Lua
	key    string
	limit  int64

	mu               sync.Mutex
	window           int64 // Unix seconds
	total, unsettled int64 // tokens of this window
}

// enter starts the current window, and drops unsettled costs of an earlier window.
func (w *windower) enter() {
	if now := time.Now().Unix(); now != w.window {
		w.window, w.total, w.unsettled = now, 0, 0
	}
}

func (w *windower) allow(n uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enter()
	if w.total+w.unsettled+int64(n) > w.limit {
		return false
	}
	w.unsettled += int64(n)
	return true
}

func (w *windower) settle(ctx context.Context) error {
	w.mu.Lock()
	w.enter()
	window, count := w.window, w.unsettled
	w.mu.Unlock()
	key := w.key + ":" + strconv.FormatInt(window, 10)
	total, err := w.script.Exec(ctx, w.client, []string{key}, []string{strconv.FormatInt(count, 10)}).AsInt64()
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.window == window {
		w.total, w.unsettled = total, w.unsettled-count
	}
	return nil
}
