package logs

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// maxImmediate is how many warnings or errors of a kind are logged immediately. The count starts over after a
	// period without a warning or error of this kind.
	maxImmediate = 5
	// period is the time after which all other warnings and errors are summed up.
	period = 10 * time.Second
	// maxKinds is how many kinds of warnings and errors are distinguished. All other kinds count as one.
	maxKinds = 256
)

// A repeats is an [slog.Handler] for warnings and errors that repeat. It logs the first records of a kind at once, and
// counts the next records. At the end of a period, it logs the last of the counted records, with their number in the
// attribute "repeated". Two records are of one kind if they have the same level, message and attributes of the logger.
// Records of lower levels are logged unchanged.
type repeats struct {
	next   slog.Handler
	logger string // the attributes of the logger
	kinds  *kinds
}

// kinds has the warnings and errors whose period has not ended.
type kinds struct {
	mu     sync.Mutex
	byName map[string]*kind
	closed bool
}

type kind struct {
	timer    *time.Timer
	logged   int          // records that were logged at once
	isActive bool         // there was a record in this period
	repeated int          // records that were not logged
	last     slog.Record  // the last record that was not logged
	next     slog.Handler // the handler for last
}

func newRepeats(next slog.Handler) *repeats {
	return &repeats{next: next, kinds: &kinds{byName: map[string]*kind{}}}
}

// Enabled implements [slog.Handler].
func (r *repeats) Enabled(ctx context.Context, level slog.Level) bool {
	return r.next.Enabled(ctx, level)
}

// WithAttrs implements [slog.Handler].
func (r *repeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	logger := r.logger
	for _, a := range attrs {
		logger += "\x00" + a.String()
	}
	return &repeats{r.next.WithAttrs(attrs), logger, r.kinds}
}

// WithGroup implements [slog.Handler].
func (r *repeats) WithGroup(name string) slog.Handler {
	return &repeats{r.next.WithGroup(name), r.logger + "\x00" + name, r.kinds}
}

// Handle implements [slog.Handler].
func (r *repeats) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelWarn {
		name := strings.Join([]string{record.Level.String(), record.Message, r.logger}, "\x00")
		if !r.kinds.admit(name, record, r.next) {
			return nil
		}
	}
	return r.next.Handle(ctx, record)
}

// admit reports whether a record must be logged at once. Otherwise it counts the record.
func (s *kinds) admit(name string, record slog.Record, next slog.Handler) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName[name] == nil && len(s.byName) >= maxKinds {
		name = ""
	}
	if s.closed {
		return true
	}
	k := s.byName[name]
	if k == nil {
		k = &kind{timer: time.AfterFunc(period, func() { s.sumUp(name) })}
		s.byName[name] = k
	}
	k.isActive = true
	if k.logged < maxImmediate {
		k.logged++
		return true
	}
	k.repeated++
	k.last, k.next = record.Clone(), next
	return false
}

// sumUp ends the period of a kind. It forgets the kind if there was no record in the period.
func (s *kinds) sumUp(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.byName[name]
	if k == nil { // kinds was closed meanwhile
		return
	}
	if !k.isActive {
		delete(s.byName, name)
		return
	}
	k.log()
	k.isActive = false
	k.timer.Reset(period)
}

// log logs the last record for all records that were counted. It does not block, because the handler writes to a queue.
func (k *kind) log() {
	if k.repeated == 0 {
		return
	}
	k.last.AddAttrs(slog.Int("repeated", k.repeated))
	_ = k.next.Handle(context.Background(), k.last) // the queue returns no error
	k.repeated = 0
}

// close sums up all kinds. Later records are logged unchanged.
func (s *kinds) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, k := range s.byName {
		k.timer.Stop()
		k.log()
		delete(s.byName, name)
	}
	s.closed = true
}
