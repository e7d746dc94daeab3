package trace

import (
	"encoding/binary"
	"io"
	"time"

	"github.com/weir-go/weir/cmd/internal/tempfile"
)

// A Reader reads the requests of a trace, in order.
type Reader struct {
	trace  *Trace
	buffer []byte // buffer for bytes from the file
	rest   []byte // bytes that are not decoded yet
	offset int64  // offset in the file
	own    bool   // the trace's pending bytes have been read, too
	last   int64
	err    error
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
func (r *Reader) Next(to *Request) bool {
	if len(r.rest) < maxRequest && !r.fill() {
		return false
	}
	b := r.rest
	flags := b[0]
	key, n := binary.Uvarint(b[1:])
	b = b[1+n:]
	if flags&isLater != 0 {
		later, n := binary.Uvarint(b)
		b = b[n:]
		if flags&wholeSecond != 0 {
			later *= uint64(time.Second)
		}
		r.last += int64(later)
	}
	*to = Request{UnixNano: r.last, Cost: 1, Key: uint32(key), Refund: flags&isRefund != 0}
	if flags&hasCost != 0 {
		to.Cost, n = binary.Uvarint(b)
		b = b[n:]
	}
	if flags&hasTier != 0 {
		to.Tier, b = b[0], b[1:]
	}
	r.rest = b
	return true
}

// fill reads more bytes until there is at least one complete request, and reports whether there is one.
func (r *Reader) fill() bool {
	if r.err != nil {
		return false
	}
	for len(r.rest) < maxRequest && r.offset < r.trace.written {
		kept := copy(r.buffer[:cap(r.buffer)], r.rest)
		want := min(int64(cap(r.buffer)-kept), r.trace.written-r.offset)
		n, err := r.trace.file.ReadAt(r.buffer[kept:kept+int(want)], r.offset)
		r.offset += int64(n)
		r.rest = r.buffer[:kept+n]
		if err != nil && (err != io.EOF || int64(n) < want) {
			r.err = tempfile.Explain(what, err)
			return false
		}
	}
	// A request is never partly in the file and partly in memory.
	if len(r.rest) == 0 && !r.own {
		r.own, r.rest = true, r.trace.pending
	}
	return len(r.rest) > 0
}

// Err returns why Next has returned false, or nil at the end of the trace.
func (r *Reader) Err() error { return r.err }
