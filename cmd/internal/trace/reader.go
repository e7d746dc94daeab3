package trace

import (
	"encoding/binary"
	"io"
	"time"

	"github.com/weir-go/weir/cmd/internal/tempfile"
)

// A Reader reads the requests of a trace, in order.
type Reader struct {
	trace       *Trace
	buffer      []byte // buffer for bytes from the file
	unread      []byte // bytes that are not decoded yet
	offset      int64  // offset in the file
	pendingRead bool   // the trace's pending bytes have been read, too
	last        int64
	err         error
}

// Read returns a Reader that is at the first request.
func (t *Trace) Read() *Reader {
	r := &Reader{trace: t}
	if t.file != nil {
		r.buffer = make([]byte, 0, 64<<10)
	}
	return r
}

// Next decodes the next request and reports whether there was one. If it returns false, Err returns the reason.
func (r *Reader) Next(dest *Request) bool {
	if len(r.unread) < maxRequest && !r.fill() {
		return false
	}
	b := r.unread
	flags := b[0]
	key, n := binary.Uvarint(b[1:])
	b = b[1+n:]
	if flags&isLater != 0 {
		delta, n := binary.Uvarint(b)
		b = b[n:]
		if flags&wholeSecond != 0 {
			delta *= uint64(time.Second)
		}
		r.last += int64(delta)
	}
	*dest = Request{UnixNano: r.last, Cost: 1, Key: uint32(key), Refund: flags&isRefund != 0}
	if flags&hasCost != 0 {
		dest.Cost, n = binary.Uvarint(b)
		b = b[n:]
	}
	if flags&hasTier != 0 {
		dest.Tier, b = b[0], b[1:]
	}
	r.unread = b
	return true
}

// fill reads more bytes until there is at least one complete request, and reports whether there is one.
func (r *Reader) fill() bool {
	if r.err != nil {
		return false
	}
	for len(r.unread) < maxRequest && r.offset < r.trace.written {
		start := copy(r.buffer[:cap(r.buffer)], r.unread)
		want := min(int64(cap(r.buffer)-start), r.trace.written-r.offset)
		n, err := r.trace.file.ReadAt(r.buffer[start:start+int(want)], r.offset)
		r.offset += int64(n)
		r.unread = r.buffer[:start+n]
		if err != nil && (err != io.EOF || int64(n) < want) {
			r.err = tempfile.Explain(purpose, err)
			return false
		}
	}
	// A request is never partly in the file and partly in memory.
	if len(r.unread) == 0 && !r.pendingRead {
		r.pendingRead, r.unread = true, r.trace.pending
	}
	return len(r.unread) > 0
}

// Err returns why Next has returned false, or nil at the end of the trace.
func (r *Reader) Err() error { return r.err }
