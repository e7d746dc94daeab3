package listen

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
)

// A Body is the body of a request, which must arrive at a minimum rate.
type Body struct {
	io.ReadCloser
	pace            pace
	unbound         bool
	expectsContinue bool        // the client sends the body when the server asks for it: 100-continue over HTTP/1
	requested       atomic.Bool // a read has asked the client for the body
	ended           atomic.Bool // the body was read to its end
}

// NewBody replaces the body of a request by a Body with a minimum rate in bytes per second. The complete body may take
// at most timeout; 0 means no bound. NewBody returns nil if the request has no body or rate is 0. Then timeout has no
// effect.
//
// The bounds also apply to a body that no handler reads. Before an answer, net/http reads up to 256 KiB of such a body,
// and would wait forever.
func NewBody(w http.ResponseWriter, r *http.Request, rate int, timeout time.Duration) *Body {
	if r.Body == http.NoBody || rate == 0 {
		return nil
	}
	b := &Body{ReadCloser: r.Body, pace: pace{control: http.NewResponseController(w), rate: rate, credit: paceGrace}}
	r.Body = b
	if timeout > 0 {
		b.pace.timeout = time.Now().Add(timeout)
	}
	b.expectsContinue = r.ProtoMajor == 1 && httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue")
	if r.ProtoMajor == 1 { // over HTTP/2, an unread body does not block anything
		b.pace.begin()
	}
	return b
}

// Unbound removes the minimum rate. It does nothing for a nil Body.
func (b *Body) Unbound() {
	if b != nil {
		b.unbound = true
	}
}

// Answering reports whether the answer must close the connection. Call it before the answer's header is written.
//
// The connection must close if the client sends its body only when asked, and the body was not read to its end.
// Otherwise net/http would wait for the rest of the body, because it does not recognize a Body. If no read of the body
// has begun, Answering also sets a deadline that ends this wait. A nil Body returns false.
func (b *Body) Answering() (closes bool) {
	if b == nil || !b.expectsContinue || b.ended.Load() {
		return false
	}
	if !b.requested.Load() {
		_ = b.pace.control.SetReadDeadline(time.Now()) // pace.set belongs to the reader, which may run now
	}
	return true
}

// Read implements [io.Reader].
func (b *Body) Read(p []byte) (n int, err error) {
	b.requested.Store(true)
	if b.unbound {
		n, err = b.ReadCloser.Read(p)
	} else {
		b.pace.begin()
		n, err = b.ReadCloser.Read(p)
		b.pace.end(n, err)
	}
	if errors.Is(err, io.EOF) {
		b.ended.Store(true)
	}
	return n, err
}

const (
	// paceGrace is how much longer a body may take than at exactly the minimum rate.
	paceGrace = 10 * time.Second
	// paceSilence is the longest pause of a body, even if the body was fast before. After such a pause, the body must
	// send bytes for a minute at the minimum rate before it may pause for that long again.
	paceSilence = time.Minute
	// paceStep is how much earlier than the exact time a deadline may be. An exact deadline for every read would cost
	// more.
	paceStep = time.Second
)

// A pace enforces the minimum rate of a body. Only the time in which weir waits for the client counts. The time in
// which the upstream accepts no bytes does not count. Only one goroutine at a time may use a pace.
type pace struct {
	control *http.ResponseController
	rate    int       // bytes per second
	timeout time.Time // the end of read_timeout; zero for none

	credit    time.Duration // how long weir waits for more bytes, at most paceSilence
	readStart time.Time     // start of the current read
	deadline  time.Time     // the deadline that is set
}

func (p *pace) begin() {
	p.readStart = time.Now()
	deadline := p.readStart.Add(max(p.credit, 0))
	if !p.timeout.IsZero() && deadline.After(p.timeout) {
		deadline = p.timeout
	}
	if shift := deadline.Sub(p.deadline); shift >= paceStep || shift < 0 {
		p.set(deadline)
	}
}

// The method end is called after a read. At the end of the body, it removes every deadline, including that of
// read_timeout. Otherwise the deadline would end the connection, because net/http continues to read in order to notice
// a disconnect.
//
// If the body breaks off before its end, the deadline stays. Without a deadline, net/http would wait forever for the
// rest.
func (p *pace) end(n int, err error) {
	earned := time.Duration(float64(n) / float64(p.rate) * float64(time.Second))
	p.credit = min(p.credit-time.Since(p.readStart)+earned, paceSilence)
	if errors.Is(err, io.EOF) {
		p.set(time.Time{})
	}
}

func (p *pace) set(deadline time.Time) {
	p.deadline = deadline
	_ = p.control.SetReadDeadline(deadline) // if the writer does not support deadlines, the body has no bound
}
