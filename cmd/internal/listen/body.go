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
	pace    pace
	unbound bool
	expects bool        // the client waits until the server asks for the body: Expect: 100-continue over HTTP/1
	asked   atomic.Bool // a read has asked for it
	ended   atomic.Bool // it was read to its end
}

// NewBody replaces the body of a request by a Body. rate is in bytes a second, 0 for no bound; the whole body may take
// at most timeout, 0 for no bound. It returns nil if there is no body or no bound. The bounds also hold for a body that
// no handler reads, because net/http reads up to 256 KiB of it before it sends an answer, and would wait forever.
func NewBody(w http.ResponseWriter, r *http.Request, rate int, timeout time.Duration) *Body {
	if r.Body == http.NoBody || rate == 0 {
		return nil
	}
	b := &Body{ReadCloser: r.Body, pace: pace{control: http.NewResponseController(w), rate: rate, credit: paceGrace}}
	r.Body = b
	if timeout > 0 {
		b.pace.timeout = time.Now().Add(timeout)
	}
	b.expects = r.ProtoMajor == 1 && httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue")
	if r.ProtoMajor == 1 { // over HTTP/2, an unread body blocks nothing
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

// Answering is called before the header of the answer is written. It reports whether the answer must close the
// connection. The client may be waiting to be asked for the rest of the body, and net/http would wait for that, because
// it does not recognize a Body. If no one has asked for the body, the wait ends here. A nil Body keeps the connection
// open.
func (b *Body) Answering() (closes bool) {
	if b == nil || !b.expects || b.ended.Load() {
		return false
	}
	if !b.asked.Load() {
		_ = b.pace.control.SetReadDeadline(time.Now()) // not by set, because a read may have begun meanwhile
	}
	return true
}

// Read implements [io.Reader].
func (b *Body) Read(into []byte) (n int, err error) {
	b.asked.Store(true)
	if b.unbound {
		n, err = b.ReadCloser.Read(into)
	} else {
		b.pace.begin()
		n, err = b.ReadCloser.Read(into)
		b.pace.end(n, err)
	}
	if errors.Is(err, io.EOF) {
		b.ended.Store(true)
	}
	return n, err
}

const (
	// paceGrace is how long a body may take beyond what its bytes allow.
	paceGrace = 10 * time.Second
	// paceSilence is how long a body may pause, however fast it was before. It may pause again after as many bytes as
	// this time allows at the minimum rate.
	paceSilence = time.Minute
	// paceStep is the largest error of a deadline. Setting an exact deadline for every read would cost more.
	paceStep = time.Second
)

// A pace enforces the minimum rate of a body. It counts the time in which weir waits for the client, but not the time
// in which the upstream does not accept what has arrived. One goroutine at a time uses it.
type pace struct {
	control *http.ResponseController
	rate    int       // bytes a second
	timeout time.Time // the end of read_timeout; zero for none

	credit   time.Duration // how long weir waits for more bytes, at most paceSilence
	began    time.Time     // of the present read
	deadline time.Time     // that is set
}

// begin is called before a read, and sets its deadline.
func (p *pace) begin() {
	p.began = time.Now()
	deadline := p.began.Add(max(p.credit, 0))
	if !p.timeout.IsZero() && deadline.After(p.timeout) {
		deadline = p.timeout
	}
	if late := deadline.Sub(p.deadline); late >= paceStep || late < 0 {
		p.set(deadline)
	}
}

// end is called after a read. The deadline of the body, also the one from read_timeout, must end with the body:
// net/http keeps reading to notice a client that leaves, and would mistake the deadline for that. If the body breaks
// off, the deadline stays, because net/http would wait for the rest.
func (p *pace) end(n int, err error) {
	earned := time.Duration(float64(n) / float64(p.rate) * float64(time.Second))
	p.credit = min(p.credit-time.Since(p.began)+earned, paceSilence)
	if errors.Is(err, io.EOF) {
		p.set(time.Time{})
	}
}

func (p *pace) set(deadline time.Time) {
	p.deadline = deadline
	_ = p.control.SetReadDeadline(deadline) // if the writer has no deadlines, the body has no bound
}
