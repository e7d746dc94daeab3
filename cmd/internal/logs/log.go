package logs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// A Log is the log of a server. Make one with [New] and Close it. All methods are safe for concurrent use.
type Log struct {
	*slog.Logger
	level   slog.LevelVar
	queue   *queue
	repeats *repeats
}

// New returns a Log that writes to out.
func New(out io.Writer, settings rulefile.Log) *Log {
	l := &Log{}
	l.SetLevel(settings)
	handler := func(w io.Writer) slog.Handler {
		options := &slog.HandlerOptions{Level: &l.level}
		if settings.Format == rulefile.LogJSON {
			jsonOptions := *options
			jsonOptions.ReplaceAttr = attrAsText
			return slog.NewJSONHandler(w, &jsonOptions)
		}
		return slog.NewTextHandler(w, options)
	}
	l.queue = newQueue(out, func(w io.Writer, dropped int) {
		record := slog.NewRecord(time.Now(), slog.LevelWarn, "lines of the log were dropped because they were not read in time", 0)
		record.AddAttrs(slog.Int("lines", dropped))
		_ = handler(w).Handle(context.Background(), record) // never fails, because to is a buffer
	})
	l.repeats = newRepeats(handler(l.queue))
	l.Logger = slog.New(l.repeats)
	return l
}

// attrAsText replaces a value that has a text form by this form, as a text log does. Otherwise JSON would have the
// fields of the struct, for example a policy as {"limit":5,"period":3600000000000}.
func attrAsText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindAny {
		return a
	}
	switch value := a.Value.Any().(type) {
	case error, *slog.Source: // slog itself writes these as text
	case fmt.Stringer:
		a.Value = slog.StringValue(value.String())
	default:
		a.Value = slog.StringValue(fmt.Sprint(value))
	}
	return a
}

// SetLevel sets the level of the log to the level in the new settings. The format does not change.
func (l *Log) SetLevel(settings rulefile.Log) { l.level.Set(settings.Level) }

// Close writes the lines that still wait, for at most a second. Later lines are lost.
func (l *Log) Close() {
	l.repeats.kinds.close()
	l.queue.close()
}
