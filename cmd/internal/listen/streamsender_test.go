package listen

import (
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A slowStream takes some time for each write, and fails if a deadline is over.
type slowStream struct {
	http.ResponseWriter
	takes []time.Duration // time of each write, in order; the last one is also for all later writes
	reset chan struct{}
}

func (w *slowStream) Write(p []byte) (int, error) {
	takes := w.takes[0]
	if len(w.takes) > 1 {
		w.takes = w.takes[1:]
	}
	select {
	case <-time.After(takes):
		return len(p), nil
	case <-w.reset:
		return 0, os.ErrDeadlineExceeded
	}
}

func (w *slowStream) SetWriteDeadline(t time.Time) error {
	if t.Before(time.Now()) {
		close(w.reset)
	}
	return nil
}

// TestASlowStream: a client accepts each frame in time. It gets its complete answer, even if the answer takes long or
// the upstream pauses.
func TestASlowStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowStream{reset: make(chan struct{}), takes: []time.Duration{59 * time.Second}}
		s := NewStreamSender(w, &http.Request{ProtoMajor: 2}, time.Minute, 0)
		for range 3 {
			n, err := s.Write(w, make([]byte, 3*pieceSize+1))
			require.NoError(t, err)
			assert.Equal(t, 3*pieceSize+1, n)
			time.Sleep(time.Hour)
		}
		w.takes = []time.Duration{time.Second, time.Hour}
		begin := time.Now()
		n, err := s.Write(w, make([]byte, 2*pieceSize))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Equal(t, pieceSize, n)
		assert.Equal(t, 61*time.Second, time.Since(begin))
	})
}
