package metering

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/usage"
)

// An answer passes on an upstream's answer to the client, and reads the cost of the request from it.
type answer struct {
	http.ResponseWriter
	q             *Request
	holds         []*meterHold
	readings      []reading
	status        int
	hidesUsage    bool // hides the usage event from a client that has not asked for the usage
	isEventStream bool
	drain         *drain // nil if the answer is not read after the client has gone
}

// A reading reads the body of an answer once for all rules that need the same fields.
type reading struct {
	fields *usage.Fields
	answer *usage.Answer
}

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.begin(status)
	}
	if !a.drain.isClientGone() {
		a.ResponseWriter.WriteHeader(status)
	}
}

func (a *answer) begin(status int) {
	a.status = status
	h := a.Header()
	contentType, encoding := h.Get("Content-Type"), h.Get("Content-Encoding")
	read := func(f *usage.Fields) {
		if f != nil && a.reader(f) == nil {
			a.readings = append(a.readings, reading{f, usage.NewAnswer(contentType, encoding, f)})
		}
	}
	for _, hold := range a.holds {
		read(hold.meter.fields)
	}
	if a.q.usageRequested { // even without a hold, because the client must not see the usage event
		read(usage.Models)
	}
	a.isEventStream = strings.HasPrefix(strings.ToLower(contentType), "text/event-stream")
	if reader := a.reader(usage.Models); reader != nil && a.q.usageRequested && a.isEventStream && reader.Plain() {
		a.hidesUsage = true
		delete(h, "Content-Length")
	}
}

// reader returns the reader of the body for rules that read the fields f.
func (a *answer) reader(f *usage.Fields) *usage.Answer {
	for _, r := range a.readings {
		if r.fields == f {
			return r.answer
		}
	}
	return nil
}

// Write implements [http.ResponseWriter]. If the final cost is known, Write settles it before it passes on the bytes.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.begin(http.StatusOK)
	}
	out := p
	for _, r := range a.readings {
		if a.hidesUsage && r.fields == usage.Models {
			out = r.answer.Filter(p)
		} else {
			r.answer.Write(p)
		}
	}
	a.settleFinal()
	if a.drain.isClientGone() {
		return len(p), nil
	}
	if len(out) > 0 {
		if n, err := a.ResponseWriter.Write(out); err != nil {
			if a.drain.detach() {
				return len(p), nil
			}
			return min(n, len(p)), err
		}
	}
	return len(p), nil
}

// writeRest passes on the bytes that were held back. It is called when the answer is complete.
func (a *answer) writeRest() {
	if reader := a.reader(usage.Models); a.hidesUsage && reader != nil && !a.drain.isClientGone() {
		if rest := reader.Remaining(); len(rest) > 0 {
			_, _ = a.ResponseWriter.Write(rest) // an error means that the client has gone
		}
	}
}

// FlushError flushes the answer. http.ResponseController calls it.
func (a *answer) FlushError() error {
	if a.status == 0 {
		a.begin(http.StatusOK)
	}
	if a.drain.isClientGone() {
		return nil
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Hijack implements [http.Hijacker]. The data of a WebSocket is not read, so the request costs the tokens that are held
// for it.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a.status = http.StatusSwitchingProtocols
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

// Unwrap returns the wrapped http.ResponseWriter, for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// maxDrains is how many answers may be read at the same time although their clients have gone.
const maxDrains = 1000

var activeDrains atomic.Int64

// A drain continues to read an answer for some time after the client has gone. A nil drain does not continue.
type drain struct {
	maxTime    time.Duration
	cancel     context.CancelFunc
	mu         sync.Mutex
	clientGone bool        // the client has gone
	ended      bool        // the request has ended
	timer      *time.Timer // ends the reading; nil if the client has not gone
}

// maxDrain returns the longest time for which a rule continues to read an answer after the client has gone. It is 0 if
// no rule does so.
func maxDrain(meters []*Meter) (maxTime time.Duration) {
	for _, m := range meters {
		if m.tokens.Abort.Kind == rulefile.AbortDrain {
			maxTime = max(maxTime, m.tokens.Abort.Drain)
		}
	}
	return maxTime
}

// begin returns the request for the upstream. The context of this request does not end when the client goes. At the end
// of the request, the caller must call the returned function.
func (d *drain) begin(r *http.Request, base context.Context) (*http.Request, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	d.cancel = cancel
	stopDetach := context.AfterFunc(r.Context(), func() { d.detach() })
	stopCancel := context.AfterFunc(base, cancel)
	return r.WithContext(ctx), func() {
		stopDetach()
		stopCancel()
		cancel()
		d.end()
	}
}

func (d *drain) isClientGone() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clientGone
}

// detach notes that the client has gone. It reports whether the answer may still have to be read.
func (d *drain) detach() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clientGone || d.ended {
		return true
	}
	d.clientGone = true
	if activeDrains.Add(1) > maxDrains {
		activeDrains.Add(-1)
		d.cancel()
		return true
	}
	d.timer = time.AfterFunc(d.maxTime, d.cancel)
	return true
}

func (d *drain) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
		activeDrains.Add(-1)
	}
}
