package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxWatchers  = 32
	writeTimeout = 5 * time.Second
)

// An update is a state, encoded once for all watchers.
type update struct {
	seq  uint64
	json []byte
}

// watchers has the open event streams, each with room for one signal of a new update. A slow stream skips updates, so
// nothing queues up.
type watchers struct {
	mu      sync.Mutex
	streams map[chan struct{}]struct{}
	latest  atomic.Pointer[update]
}

func (w *watchers) add() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.streams) >= maxWatchers {
		return nil
	}
	c := make(chan struct{}, 1)
	w.streams[c] = struct{}{}
	return c
}

func (w *watchers) remove(c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.streams, c)
}

func (w *watchers) hasAny() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.streams) > 0
}

func (w *watchers) send(u *update) {
	w.latest.Store(u)
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.streams {
		select {
		case c <- struct{}{}:
		default: // the stream has not received the last signal yet
		}
	}
}

// serveEvents sends the history, and then the state every second. If the stream has missed an update, serveEvents sends
// the history again. So the history on a page is always complete.
func (a *Admin) serveEvents(w http.ResponseWriter, r *http.Request) {
	signal := a.watchers.add()
	if signal == nil {
		writeText(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are open already, the maximum", maxWatchers))
		return
	}
	defer a.watchers.remove(signal)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := stream{w, http.NewResponseController(w)}

	view, _ := a.history.view(spans[0].name)
	sent := view.Seq
	if out.send("history", view) != nil || out.send("state", a.state(time.Now())) != nil {
		return
	}
	for {
		select {
		case <-signal:
		case <-r.Context().Done():
			return
		case <-a.done:
			return
		}
		if c, _ := a.caller(r); c.role < viewer { // the token is no longer valid
			return
		}
		latest := a.watchers.latest.Load()
		if latest.seq > sent+1 {
			view, _ = a.history.view(spans[0].name)
			if out.send("history", view) != nil {
				return
			}
		}
		if out.sendEvent("state", latest.json) != nil {
			return
		}
		sent = max(view.Seq, latest.seq)
	}
}

// A stream writes server-sent events. It closes the connection if the reader accepts no bytes for writeTimeout,
// whatever timeout the server has.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s stream) send(name string, send any) error {
	text, err := json.Marshal(send)
	if err != nil {
		return err
	}
	return s.sendEvent(name, text)
}

func (s stream) sendEvent(name string, json []byte) error {
	// If the connection does not support deadlines, the server's own timeout applies.
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", name, json); err != nil {
		return err
	}
	return s.control.Flush()
}
