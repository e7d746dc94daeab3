package usage

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

const (
	maxDecoding = 32        // answers that are decompressed at a time; others are not read
	maxInflated = 256 << 20 // largest number of decompressed bytes of an answer
	maxWindow   = 8 << 20   // largest window of zstd: see RFC 9659
)

var decoding atomic.Int64

// An Answer reads the usage in a body while the body is sent. The body may be compressed. The methods may be called
// from several goroutines.
type Answer struct {
	Encoding string // Content-Encoding; "" for none

	mu      sync.Mutex // guards scanner
	scanner *Scanner
	head    []byte // the first bytes, by which compression without Content-Encoding is recognized; then nil
	started bool
	pipe    *io.PipeWriter // leads to the decompressor; nil if there is none
	done    chan struct{}
	unread  bool

	out         []byte // for Filter: the bytes that it has returned, and the bytes of the current event
	returned    int    // number of bytes of out that Filter has returned
	inLongEvent bool   // the current event is longer than maxEvent
}

// NewAnswer returns the reader of an answer. It needs the Content-Type and the Content-Encoding of the answer. The
// caller must close the reader.
func NewAnswer(contentType, encoding string, f *Fields) *Answer {
	return &Answer{Encoding: strings.ToLower(strings.TrimSpace(encoding)), scanner: NewScanner(contentType, f)}
}

// Scanner calls the function f with the scanner. During the call, nothing is written to the scanner.
func (a *Answer) Scanner(f func(*Scanner)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a.scanner)
}

// Final returns the usage of the answer. As long as the usage is not final, it returns false.
func (a *Answer) Final() (u Usage, final bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.scanner.final {
		return u, false
	}
	u, _, final = a.scanner.Usage()
	return u, final
}

// Unread reports whether some part of the body so far could not be read because of its encoding.
func (a *Answer) Unread() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unread
}

const magicLen = 4

// Write reads a piece of the body.
func (a *Answer) Write(p []byte) {
	if !a.started {
		if len(a.head) > 0 || len(p) < magicLen {
			if a.head = append(a.head, p...); len(a.head) < magicLen {
				return
			}
			p = a.head
		}
		a.begin(p)
	}
	a.forward(p)
}

// begin chooses how the body is read, from its first bytes.
func (a *Answer) begin(head []byte) {
	a.head, a.started = nil, true
	if open := a.decoder(head); open != nil {
		a.decode(open)
	}
}

func (a *Answer) forward(p []byte) {
	switch {
	case len(p) == 0:
	case a.pipe != nil:
		_, _ = a.pipe.Write(p) // an error comes from the decompressor, which sets a.unread
	default:
		a.mu.Lock()
		if !a.unread {
			a.scanner.Write(p)
		}
		a.mu.Unlock()
	}
}

// Plain reports whether the body is not compressed, as far as this is known. The scanner then gets the bytes of the
// body unchanged.
func (a *Answer) Plain() bool { return a.Encoding == "" || a.Encoding == "identity" }

// End notes that the body is complete.
func (a *Answer) End() {
	a.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.unread {
		a.scanner.End()
	}
}

// Close ends the answer. Before that, it waits until everything that was written has been read.
func (a *Answer) Close() {
	if head := a.head; !a.started {
		a.begin(head)
		a.forward(head)
	}
	if a.pipe != nil {
		_ = a.pipe.Close() // Close always returns nil
		<-a.done
	}
}

type opener func(io.Reader) (io.Reader, func(), error)

func (a *Answer) decoder(head []byte) opener {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return openers["gzip"]
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return openers["zstd"]
	case a.Encoding == "br" || a.Encoding == "deflate":
		return openers[a.Encoding]
	case !a.Plain() && openers[a.Encoding] == nil:
		a.unread = true
	case a.scanner.frames.framing != binaries && len(head) > 0 && !isText(head[0]):
		return openers["br"]
	}
	return nil
}

func isText(c byte) bool {
	return c >= ' ' && c < 0x7f || c == '\n' || c == '\r' || c == '\t' || c == 0xef
}

var openers = map[string]opener{
	"gzip": func(r io.Reader) (io.Reader, func(), error) { z, err := gzip.NewReader(r); return z, func() {}, err },
	"deflate": func(r io.Reader) (io.Reader, func(), error) {
		z, err := zlib.NewReader(r)
		return z, func() {}, err
	},
	"br": func(r io.Reader) (io.Reader, func(), error) { return brotli.NewReader(r), func() {}, nil },
	"zstd": func(r io.Reader) (io.Reader, func(), error) {
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	},
}

func init() { openers["x-gzip"] = openers["gzip"] }

// decode starts a goroutine that decompresses all bytes that are written after the call.
func (a *Answer) decode(open opener) {
	if decoding.Add(1) > maxDecoding {
		decoding.Add(-1)
		a.unread = true
		return
	}
	r, w := io.Pipe()
	a.pipe, a.done = w, make(chan struct{})
	go func() {
		defer close(a.done)
		defer decoding.Add(-1)
		err := a.inflate(open, r)
		if err != nil {
			a.mu.Lock()
			a.unread = true
			a.mu.Unlock()
		}
		_ = r.CloseWithError(errUnread)
	}()
}

var errUnread = errors.New("usage: the body is no longer read")

func (a *Answer) inflate(open opener, r io.Reader) error {
	z, closeReader, err := open(r)
	if err != nil {
		return err
	}
	defer closeReader()
	buffer := make([]byte, 4<<10)
	for left := maxInflated; left > 0; {
		n, err := z.Read(buffer)
		left -= n
		a.mu.Lock()
		a.scanner.Write(buffer[:n])
		a.mu.Unlock()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return errUnread
}

// Decompressor returns a reader that decompresses a body, and a function that closes the reader. The parameter encoding
// must be in lower case. It returns an error if the encoding is unknown, and may do so if the body is in another
// encoding.
func Decompressor(body io.Reader, encoding string) (plain io.Reader, closeReader func(), err error) {
	open := openers[encoding]
	if open == nil {
		return nil, nil, errors.New("unknown encoding: " + encoding)
	}
	return open(body)
}

// maxEvent is the length of the longest event that can be hidden from the client.
const maxEvent = 32 << 10

// Filter does what Write does, for uncompressed server-sent events. It returns the bytes for a client that has not
// asked for the usage, without events that have only a usage. An event is returned when it is complete or longer than
// 32 KiB. The bytes are valid until the next call.
func (a *Answer) Filter(p []byte) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.started = true
	start, pos := 0, copy(a.out, a.out[a.returned:]) // the beginning of the event, and of the bytes that were not read
	a.out = append(a.out[:pos], p...)
	for pos < len(a.out) {
		n, event := a.scanner.Step(a.out[pos:])
		pos += n
		switch {
		case event && a.scanner.UsageOnly() && !a.inLongEvent:
			a.out = append(a.out[:start], a.out[pos:]...)
			pos = start
		case event || a.inLongEvent || pos-start > maxEvent:
			start, a.inLongEvent = pos, !event
		}
	}
	a.returned = start
	return a.out[:start]
}

// Remaining returns the bytes that [Answer.Filter] has not returned so far. It is called at the end of an answer.
func (a *Answer) Remaining() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	rest := a.out[a.returned:]
	if a.out, a.returned = nil, 0; a.scanner.UsageOnly() {
		return nil
	}
	return rest
}
