package accesslog

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// maxWindow bounds the memory of decompression, in bytes. Without a bound, a file of a few bytes could ask for
// gigabytes. A file from "zstd --long" needs the full 128 MiB, and a file from "xz -9" needs half.
const maxWindow = 128 << 20

// A coding is a compression of a log, or a character encoding.
type coding struct {
	name    string
	matches func(start []byte) bool
	open    func(io.Reader) (io.Reader, error) // nil for a coding that is refused
}

// startSize is how many bytes distinguish the codings.
const startSize = 10

// codings has the known codings. They are recognized by the first bytes of a log, so that they are also found in a
// pipe, which has no file name. Several compressed streams in a row, as in concatenated rotated logs, are read as one.
// Several texts in UTF-16 in a row are not read as one.
var codings = []coding{
	{"gzip", magic("\x1f\x8b"), func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{"bzip2", isBzip2, func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }},
	{"xz", magic("\xfd7zXZ\x00"), func(r io.Reader) (io.Reader, error) { return xz.NewReader(r, maxWindow) }},
	{"zstd", isZstd, openZstd},
	{"UTF-16", magic("\xff\xfe"), openUTF16},
	{"UTF-16", magic("\xfe\xff"), openUTF16},
	{"zip", magic("PK\x03\x04"), nil},
	{"7z", magic("7z\xbc\xaf\x27\x1c"), nil},
	{"lz4", magic("\x04\x22\x4d\x18"), nil},
	{"compress (.Z)", magic("\x1f\x9d"), nil},
}

func magic(prefix string) func([]byte) bool {
	return func(start []byte) bool { return bytes.HasPrefix(start, []byte(prefix)) }
}

// isBzip2 checks for BZh and for the magic number of the first block, because a text could also begin with BZh. The
// number has the digits of pi or, for an empty file, of the square root of pi.
func isBzip2(start []byte) bool {
	if len(start) < startSize || !bytes.HasPrefix(start, []byte("BZh")) || start[3] < '1' || start[3] > '9' {
		return false
	}
	block := string(start[4:startSize])
	return block == "\x31\x41\x59\x26\x53\x59" || block == "\x17\x72\x45\x38\x50\x90"
}

// isZstd recognizes a frame or a skippable frame (RFC 8878, sections 3.1.1 and 3.1.2). Files of pzstd begin with a
// skippable frame.
func isZstd(start []byte) bool {
	return bytes.HasPrefix(start, []byte("\x28\xb5\x2f\xfd")) ||
		len(start) >= 4 && start[0]&0xf0 == 0x50 && string(start[1:4]) == "\x2a\x4d\x18"
}

func openZstd(r io.Reader) (io.Reader, error) {
	// One goroutine is enough, because decompression is a small part of the time of a replay.
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

func openUTF16(r io.Reader) (io.Reader, error) {
	decoder := unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder()
	return transform.NewReader(r, decoder), nil
}

// decode returns the text of a stream, and the name of its coding, or "".
func decode(raw *bufio.Reader) (text io.Reader, name string, err error) {
	start, _ := raw.Peek(startSize) // reading the text returns the error again
	for _, c := range codings {
		switch {
		case !c.matches(start):
		case c.open == nil:
			return nil, "", fmt.Errorf("this is %s, which cannot be read: unpack it first, or compress it with gzip, bzip2, xz or zstd", c.name)
		default:
			text, err = c.open(raw)
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				err = damageError(err, c.name, 0)
			}
			return text, c.name, err
		}
	}
	return raw, "", nil
}

// damageError explains a failed decompression to the person who provided the data.
func damageError(err error, coding string, line int) error {
	switch {
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, xz.ErrMemlimit):
		return fmt.Errorf("the %s data needs more than %d MiB of memory to be unpacked; unpack it yourself: %w",
			coding, maxWindow>>20, err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, xz.ErrBuf):
		return fmt.Errorf("the %s data breaks off after line %d: the file is truncated; "+
			"get a complete copy, or pipe it through a program that unpacks the intact part: %w", coding, line, err)
	}
	return fmt.Errorf("the %s data is damaged after line %d; get an intact copy: %w", coding, line, err)
}
