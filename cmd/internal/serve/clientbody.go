package serve

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/cmd/internal/config"
)

// A clientBody is the body of a request. It notes an error of the client's side, which the transport reports like a
// failure of the upstream, and bounds the time that the client may take.
type clientBody struct {
	io.ReadCloser
	pace   *pace                 // nil for no bound
	broken atomic.Pointer[error] // written by the transport's goroutine
	ended  bool                  // read by the same

	// Where ignore_client_abort delays the end of the body that is broken, that lasts until the context is done.
	delay   context.Context // nil for no delay
	longest time.Duration
}

// begin puts the body in the place of the request's, at the least rate of the server's settings. The bound is also for
// what no handler reads: net/http takes up to 256 KiB of that before it sends an answer, and would wait for ever.
func (b *clientBody) begin(w http.ResponseWriter, r *http.Request, server *config.Server) {
	if r.Body == http.NoBody {
		return
	}
	b.ReadCloser, r.Body = r.Body, b
	if server.MinBodyRate == 0 {
		return
	}
	b.pace = &pace{control: http.NewResponseController(w), rate: server.MinBodyRate}
	if server.ReadTimeout > 0 {
		b.pace.timeout = time.Now().Add(server.ReadTimeout)
	}
	if r.ProtoMajor == 1 { // over HTTP/2 a body that is not read holds nothing up
		b.pace.begin()
	}
}

// Read implements [io.Reader].
func (b *clientBody) Read(into []byte) (int, error) {
	if b.ended {
		// net/http has closed it by now if the answer has begun, and the transport would close the connection
		return 0, io.EOF
	}
	if b.pace != nil {
		b.pace.begin()
	}
	n, err := b.ReadCloser.Read(into)
	if b.pace != nil {
		b.pace.end(n, err)
	}
	b.ended = errors.Is(err, io.EOF)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, http.ErrBodyReadAfterClose) {
		if b.broken.CompareAndSwap(nil, &err) && b.delay != nil {
			over := time.NewTimer(b.longest)
			defer over.Stop()
			select {
			case <-b.delay.Done():
			case <-over.C:
			}
		}
	}
	return n, err
}

// err returns the first error of the client's side; nil if there was none.
func (b *clientBody) err() error {
	if err := b.broken.Load(); err != nil {
		return *err
	}
	return nil
}

const (
	// paceGrace is how long a body may take beyond what its bytes allow.
	paceGrace = 10 * time.Second
	// paceSilence is how long a body may stop, however fast it was before.
	paceSilence = time.Minute
	// paceStep is how far a deadline is from the right one at most. To set one for every read would cost more.
	paceStep = time.Second
)

// A pace is the least rate at which a body must come. It counts the time in which weir waits for the client, and not
// that in which the upstream does not take what has come. It is used by one goroutine at a time.
type pace struct {
	control *http.ResponseController
	rate    int       // bytes a second
	timeout time.Time // the end of read_timeout; zero for none

	bytes    int64
	waited   time.Duration
	began    time.Time // of the present read
	deadline time.Time // that is set
}

// begin is called before a read, and sets its deadline.
func (p *pace) begin() {
	p.began = time.Now()
	allowed := paceGrace + time.Duration(float64(p.bytes)/float64(p.rate)*float64(time.Second))
	deadline := p.began.Add(min(max(allowed-p.waited, 0), paceSilence))
	if !p.timeout.IsZero() && deadline.After(p.timeout) {
		deadline = p.timeout
	}
	if late := deadline.Sub(p.deadline); late >= paceStep || late < 0 {
		p.set(deadline)
	}
}

// end is called after a read. The deadline, also that of read_timeout, must not last longer than the body: net/http
// goes on reading to notice a client that leaves, and would take the end of the deadline for that. The deadline of a
// body that breaks off stays, or net/http would wait for the rest of it.
func (p *pace) end(n int, err error) {
	p.bytes += int64(n)
	p.waited += time.Since(p.began)
	if errors.Is(err, io.EOF) {
		p.set(time.Time{})
	}
}

func (p *pace) set(deadline time.Time) {
	p.deadline = deadline
	_ = p.control.SetReadDeadline(deadline) // of a writer that has none the body has no bound
}
