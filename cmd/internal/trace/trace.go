package trace

import (
	"encoding/binary"
	"time"

	"github.com/weir-go/weir/cmd/internal/tempfile"
)

// A Request is a request that a rule counts.
type Request struct {
	UnixNano int64
	Cost     uint64
	Key      uint32 // from 0
	Tier     uint8
	Refund   bool // its answer gives the tokens back
}

// maxPending is how many bytes of a trace stay in memory.
const maxPending = 1 << 20

// A Trace has requests in the order of time. The zero Trace is empty. It is not safe for concurrent use. But once
// nothing is added any more, several Readers may read it concurrently.
type Trace struct {
	Keys     int // number of different keys
	Requests uint64

	last    int64  // time of the last request
	pending []byte // bytes that are not in the file yet
	file    *tempfile.File
	written int64 // bytes in the file
}

// These are the bits of a request's first byte.
const (
	isRefund    = 1 << iota
	hasCost     // the cost is not 1
	hasTier     // the tier is not 0
	isLater     // the time is later than that of the previous request
	wholeSecond // later by whole seconds
)

// Add adds a request. Requests must be added in the order of time. An error is from the temporary file, for example
// that the disk is full.
func (t *Trace) Add(r Request) error {
	if t.pending == nil {
		t.pending = make([]byte, 0, maxPending+maxRequest)
	}
	flags, delta := byte(0), uint64(r.UnixNano-t.last)
	if r.Refund {
		flags |= isRefund
	}
	if r.Cost != 1 {
		flags |= hasCost
	}
	if r.Tier != 0 {
		flags |= hasTier
	}
	if delta > 0 {
		flags |= isLater
		if delta%uint64(time.Second) == 0 {
			flags, delta = flags|wholeSecond, delta/uint64(time.Second)
		}
	}
	b := binary.AppendUvarint(append(t.pending, flags), uint64(r.Key))
	if flags&isLater != 0 {
		b = binary.AppendUvarint(b, delta)
	}
	if flags&hasCost != 0 {
		b = binary.AppendUvarint(b, r.Cost)
	}
	if flags&hasTier != 0 {
		b = append(b, r.Tier)
	}
	t.pending, t.last = b, r.UnixNano
	t.Requests++
	t.Keys = max(t.Keys, int(r.Key)+1)
	if len(b) < maxPending {
		return nil
	}
	return t.spill()
}

// maxRequest is the largest number of bytes that a request takes: flags, tier, and three numbers.
const maxRequest = 2 + 3*binary.MaxVarintLen64

// spill moves the pending bytes to the file.
func (t *Trace) spill() (err error) {
	if t.file == nil {
		if t.file, err = tempfile.New(purpose); err != nil {
			return err
		}
	}
	n, err := t.file.Write(t.pending)
	t.written += int64(n)
	t.pending = t.pending[:0]
	if err != nil {
		return tempfile.Explain(purpose, err)
	}
	return nil
}

// purpose is the purpose of the temporary file, for errors.
const purpose = "the requests of each rule"

// Close removes the temporary file. After that, the trace is empty.
func (t *Trace) Close() error {
	file := t.file
	*t = Trace{}
	if file == nil {
		return nil
	}
	return file.Close()
}
