package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// The function without returns the log without the times.
func without(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(line, " ")
		b.WriteString(rest)
	}
	return b.String()
}

// TestAFloodIsSummedUp: an error occurs twenty thousand times in twenty-five seconds. The log has only eight lines.
func TestAFloodIsSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := New(&out, rulefile.Log{})
		one, two := l.With("upstream", "one"), l.With("upstream", "two")
		for i := range 20_000 {
			one.Error("upstream failed", "n", i)
			if i%4000 == 0 {
				two.Error("upstream failed", "n", i)
				l.Info("reloaded")
			}
			time.Sleep(1251 * time.Microsecond) // never exactly when a sum is written
		}
		l.Close()
		one.Error("upstream failed", "n", "after the end")
		var ones []string
		text := without(out.String())
		for line := range strings.Lines(text) {
			if strings.Contains(line, "upstream=one") {
				ones = append(ones, line)
			}
		}
		assert.Equal(t, []string{
			"level=ERROR msg=\"upstream failed\" upstream=one n=0\n",
			"level=ERROR msg=\"upstream failed\" upstream=one n=1\n",
			"level=ERROR msg=\"upstream failed\" upstream=one n=2\n",
			"level=ERROR msg=\"upstream failed\" upstream=one n=3\n",
			"level=ERROR msg=\"upstream failed\" upstream=one n=4\n",
			"level=ERROR msg=\"upstream failed\" upstream=one n=7993 repeated=7989\n",
			"level=ERROR msg=\"upstream failed\" upstream=one n=15987 repeated=7994\n",
			"level=ERROR msg=\"upstream failed\" upstream=one n=19999 repeated=4012\n",
		}, ones)
		assert.Contains(t, text, "upstream=two n=0\n", "another upstream is another kind")
		assert.Equal(t, 5, strings.Count(text, "level=INFO msg=reloaded\n"), "what is no warning passes")
	})
}

// TestAKindIsForgotten: if a kind of line has not occurred for a period, it is forgotten. The next line of this kind is
// logged at once.
func TestAKindIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := New(&out, rulefile.Log{})
		for range 3 {
			for range maxImmediate {
				l.Warn("a")
			}
			time.Sleep(2*period + time.Second)
		}
		synctest.Wait()
		assert.Empty(t, l.repeats.kinds.byName)
		l.Close()
		assert.Equal(t, strings.Repeat("level=WARN msg=a\n", 3*maxImmediate), without(out.String()))
	})
}

// TestManyKinds: if all messages are different, neither the memory nor the log grows without bound.
func TestManyKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := New(&out, rulefile.Log{})
		for i := range 10 * maxKinds {
			l.Warn(fmt.Sprint("kind ", i))
		}
		assert.LessOrEqual(t, len(l.repeats.kinds.byName), maxKinds+1)
		l.Close()
		assert.Equal(t, maxKinds+maxImmediate+1, strings.Count(out.String(), "\n"))
		assert.Contains(t, out.String(), fmt.Sprintf("repeated=%d", 9*maxKinds-maxImmediate))
	})
}

// A gate is a writer that blocks until it is opened.
type gate struct {
	open    chan struct{}
	written atomic.Int64
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	g.written.Add(int64(bytes.Count(p, []byte("\n"))))
	if bytes.Contains(p, []byte("were dropped")) {
		g.written.Add(1 << 32)
	}
	return len(p), nil
}

// TestAReaderThatStandsStill: a reader that has stopped reading does not delay requests. Lines are dropped, and the log
// says how many.
func TestAReaderThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &gate{open: make(chan struct{})}
		l := New(out, rulefile.Log{})
		line := strings.Repeat("x", 1000)
		for range 10_000 {
			l.Info(line)
		}
		begin := time.Now()
		close(out.open)
		l.Close()
		assert.Less(t, time.Since(begin), flushTime)
		written := out.written.Load()
		assert.Positive(t, written>>32, "the log says that lines are missing")
		assert.Less(t, written&(1<<32-1), int64(3*maxQueued/1000))
	})
}

func TestAReaderThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &gate{open: make(chan struct{})}
		l := New(out, rulefile.Log{})
		l.Info("a")
		begin := time.Now()
		l.Close()
		assert.Equal(t, flushTime, time.Since(begin))
		close(out.open) // so that the queue's goroutine ends
	})
}

// broken is a standard error whose reader has gone.
type broken struct{ io.Writer }

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestAReaderThatIsGone(t *testing.T) {
	l := New(broken{}, rulefile.Log{})
	l.Error("a")
	l.Close()
}

func TestFormatsAndLevels(t *testing.T) {
	var out bytes.Buffer
	l := New(&out, rulefile.Log{Format: rulefile.LogJSON, Level: slog.LevelWarn})
	l.Info("not this")
	l.Warn("this", "n", 1)
	l.SetLevel(rulefile.Log{Level: slog.LevelDebug})
	l.Debug("and this")
	l.Close()
	assert.Regexp(t, `^\{"time":"[^"]+","level":"WARN","msg":"this","n":1}`+"\n"+
		`\{"time":"[^"]+","level":"DEBUG","msg":"and this"}`+"\n$", out.String())
}
