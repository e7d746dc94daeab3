package listen

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
)

// A Body is the body of a request, which must come at a least rate.
type Body struct {
	io.ReadCloser
	pace    pace
	unbound bool
	expects bool        // the client sends it when it is asked for: Expect: 100-continue over HTTP/1
	asked   atomic.Bool // it was, by a read
	ended   atomic.Bool // it was read to its end
}

// NewBody puts a Body in the place of a request's, at a rate in bytes a second, 0 for no bound, and for at most
// timeout, 0 for any time. It returns nil where there is no body or no bound. The bound is also for what no handler
// reads: net/http takes up to 256 KiB of that before it sends an answer, and would wait for ever.
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
	if r.ProtoMajor == 1 { // over HTTP/2 a body that is not read holds nothing up
		b.pace.begin()
	}
	return b
}

// Unbound lets the body be silent. A nil Body is so already.
func (b *Body) Unbound() {
	if b != nil {
		b.unbound = true
	}
}

// Answering reports whether the answer, whose header is written next, closes the connection: the client may wait to be
// asked for the rest of the body, and net/http would wait for that, since it does not see that a Body is of this kind.
// A body that nobody has asked for is waited for no longer. A nil Body goes on.
func (b *Body) Answering() (closes bool) {
	if b == nil || !b.expects || b.ended.Load() {
		return false
	}
	if !b.asked.Load() {
		_ = b.pace.control.SetReadDeadline(time.Now()) // not by set: a read may have begun meanwhile
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
	// paceSilence is how long a body may stop, however fast it was before. It may do so again when as many bytes more
	// have come as take so long at the least rate.
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

	credit   time.Duration // how long weir waits for more, at most paceSilence
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

// end is called after a read. The deadline, also that of read_timeout, must not last longer than the body: net/http
// goes on reading to notice a client that leaves, and would take the end of the deadline for that. The deadline of a
// body that breaks off stays, or net/http would wait for the rest of it.
func (p *pace) end(n int, err error) {
	earned := time.Duration(float64(n) / float64(p.rate) * float64(time.Second))
	p.credit = min(p.credit-time.Since(p.began)+earned, paceSilence)
	if errors.Is(err, io.EOF) {
		p.set(time.Time{})
	}
}

func (p *pace) set(deadline time.Time) {
	p.deadline = deadline
	_ = p.control.SetReadDeadline(deadline) // of a writer that has none the body has no bound
}
