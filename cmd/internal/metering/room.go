package metering

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// maxRoom is how many bytes of memory the bodies of all requests together may use.
	maxRoom = 256 << 20
	// maxShare is how many of these bytes one client may use if it has several requests in progress.
	maxShare = maxRoom / 8
	// maxPiece is how much of a body is read at a time. Longer bodies count for the share of their client.
	maxPiece = 64 << 10
	// minPiece is the size of the first piece if the length of the body is unknown.
	minPiece = 2 << 10
)

var (
	// ErrNoRoom means that the bodies of other requests use all the memory for bodies.
	ErrNoRoom = errors.New("too many bodies of requests are in memory")
	// ErrShare means that the client's other requests use as much of the memory for bodies as one client may.
	ErrShare = errors.New("too many bodies of requests of one client are in memory")
)

type room struct {
	used atomic.Int64

	mu     sync.Mutex
	shares map[netip.Prefix]int64 // bytes that count for the share of a client
}

func (o *room) take(n int64) bool {
	if o.used.Add(n) > maxRoom {
		o.used.Add(-n)
		return false
	}
	return true
}

// share adds n bytes of a request to a client's share. The parameter counted is how many bytes of this request count
// already. share returns false if the client would exceed its share. It never returns false for the client's only
// request.
func (o *room) share(client netip.Prefix, n, counted int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	current := o.shares[client]
	if n > 0 && current > counted && current+n > maxShare {
		return false
	}
	if o.shares == nil {
		o.shares = map[netip.Prefix]int64{}
	}
	if o.shares[client] = current + n; current+n == 0 {
		delete(o.shares, client)
	}
	return true
}

// A claim is the part of the room that one request uses. Memory is claimed before it is allocated.
type claim struct {
	room     *room
	clientOf func() netip.Prefix // returns the client; the zero Prefix for a client without a share
	bytes    int64
	spare    int64        // part of bytes, for a buffer that may be allocated later
	client   netip.Prefix // the client for whose share the bytes count; the zero Prefix if they do not count yet
}

// take claims n more bytes. It returns [ErrNoRoom] or [ErrShare] if they are not available.
func (c *claim) take(n int64) error {
	if !c.room.take(n) {
		return ErrNoRoom
	}
	if c.client.IsValid() && !c.room.share(c.client, n, c.bytes) {
		c.room.used.Add(-n)
		return ErrShare
	}
	c.bytes += n
	return nil
}

func (c *claim) give(n int64) {
	c.bytes -= n
	if c.client.IsValid() {
		c.room.share(c.client, -n, 0)
	}
	c.room.used.Add(-n)
}

// countForClient makes all bytes of the claim, now and later, count for the client's share.
func (c *claim) countForClient() error {
	if c.client.IsValid() {
		return nil
	}
	client := c.clientOf()
	if client.IsValid() && !c.room.share(client, c.bytes, 0) {
		return ErrShare
	}
	c.client = client
	return nil
}

// giveSpare gives back the spare bytes, because their buffer will not be allocated.
func (c *claim) giveSpare() {
	c.give(c.spare)
	c.spare = 0
}

// sizeOf returns how much memory a buffer of n bytes can take at most. The allocator rounds up to the next of its size
// classes. Up to 32 KiB, this adds at most about an eighth plus 16 bytes. Larger sizes are multiples of a page.
func sizeOf(n int) int64 {
	if n <= 32<<10 {
		return int64(n + n/8 + 16)
	}
	return (int64(n) + 8191) &^ 8191
}

// read reads maxBytes bytes, or fewer if the body ends. The parameter length is the announced length, or -1. The bytes
// stay in pieces until all have arrived. So an incomplete body uses only the memory of its bytes and of one piece.
//
// The result end is the error that ended the reading: io.EOF at the end of the body, nil if there may be more. The
// result err is [ErrNoRoom] or [ErrShare].
func (c *claim) read(from io.Reader, length int64, maxBytes int) (text []byte, end, err error) {
	var pieces [][]byte
	n, capacity, size := 0, 0, int64(0)
	for n < maxBytes && end == nil {
		if n == capacity {
			next := nextPiece(n, length, maxBytes)
			if n+next > maxPiece {
				if err := c.countForClient(); err != nil {
					return nil, nil, err
				}
			}
			if err := c.take(sizeOf(next)); err != nil {
				return nil, nil, err
			}
			pieces, capacity, size = append(pieces, make([]byte, 0, next)), capacity+next, size+sizeOf(next)
		}
		piece := &pieces[len(pieces)-1]
		var received int
		received, end = from.Read((*piece)[len(*piece):cap(*piece)])
		*piece, n = (*piece)[:len(*piece)+received], n+received
	}
	if len(pieces) == 1 {
		return pieces[0], end, nil
	}
	if !c.room.take(sizeOf(n)) { // while the pieces are copied, they are still in memory, too
		return nil, nil, ErrNoRoom
	}
	defer c.room.used.Add(-sizeOf(n))
	if err := c.take(max(sizeOf(n)-size, 0)); err != nil {
		return nil, nil, err
	}
	text = slices.Clip(bytes.Join(pieces, nil))
	c.give(max(size-sizeOf(n), 0))
	return text, end, nil
}

// nextPiece returns the size of the next piece after n bytes were read.
func nextPiece(n int, length int64, maxBytes int) int {
	next := int64(max(n, minPiece))
	if length >= int64(n) {
		next = length - int64(n) + 1 // one byte more, so that the same read reports the end
	}
	return int(min(next, maxPiece, int64(maxBytes-n)))
}
