package listen

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// A StreamSender resets an HTTP/2 stream if the client keeps a flow-control window closed for timeout: the window of
// the stream or of the connection. A [sender] cannot do this: a write that waits for a window is not visible on the
// connection. A nil StreamSender has no timeout. Only one goroutine at a time may write.
type StreamSender struct {
	control        *http.ResponseController
	timeout        time.Duration
	answerDeadline time.Time // deadline of the complete answer; zero for no bound

	mu            sync.Mutex
	timer         *time.Timer
	writeDeadline time.Time // deadline of the current write; zero for none
}

// pieceSize is how many bytes of an answer a client must accept within the timeout. It is the size of a frame.
const pieceSize = 16 << 10

// NewStreamSender returns the StreamSender for an answer. The parameter writeTimeout bounds the time of the complete
// answer; 0 means no bound. NewStreamSender returns nil over HTTP/1, or if sendTimeout is 0.
func NewStreamSender(w http.ResponseWriter, r *http.Request, sendTimeout, writeTimeout time.Duration) *StreamSender {
	if r.ProtoMajor < 2 || sendTimeout == 0 {
		return nil
	}
	s := &StreamSender{control: http.NewResponseController(w), timeout: sendTimeout}
	if writeTimeout > 0 {
		s.answerDeadline = time.Now().Add(writeTimeout)
	}
	return s
}

// Write writes all of p, or returns an error.
func (s *StreamSender) Write(to io.Writer, p []byte) (n int, err error) {
	if s == nil {
		return to.Write(p)
	}
	for {
		s.begin()
		m, err := to.Write(p[n:min(n+pieceSize, len(p))])
		s.end()
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

// Flush sends what has been written.
func (s *StreamSender) Flush(control *http.ResponseController) error {
	if s != nil {
		s.begin()
		defer s.end()
	}
	return control.Flush()
}

func (s *StreamSender) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeDeadline = time.Now().Add(s.timeout)
	if s.timer == nil {
		s.timer = time.AfterFunc(s.timeout, s.expire)
	} else {
		s.timer.Reset(s.timeout)
	}
}

func (s *StreamSender) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeDeadline = time.Time{}
	s.timer.Stop()
}

// expire resets the stream. It holds the lock, so the handler cannot return before expire is done. After the handler
// has returned, the stream must not be used.
func (s *StreamSender) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.writeDeadline.IsZero() && !time.Now().Before(s.writeDeadline) {
		_ = s.control.SetWriteDeadline(time.Unix(1, 0)) // never fails for HTTP/2
	}
}

// Last sets the deadline for the rest of the answer. net/http sends this rest after the handler has returned.
func (s *StreamSender) Last() {
	deadline := time.Now().Add(s.timeout)
	if !s.answerDeadline.IsZero() && s.answerDeadline.Before(deadline) {
		deadline = s.answerDeadline
	}
	_ = s.control.SetWriteDeadline(deadline) // never fails for HTTP/2
}
