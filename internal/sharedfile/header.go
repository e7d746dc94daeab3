package sharedfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/cespare/xxhash/v2"
)

const (
	layoutVersion = 8
	magic         = "weirtabl"
	orderMark     = 0x0102_0304_0506_0708
	pageBytes     = 4096
	headerBytes   = seatsAt + seats*seatBytes
	textAt        = 128
	clockAt       = pageBytes
	seatsAt       = 2 * pageBytes
	seats         = 1 << seatBits
	seatBits      = 10
	seatBytes     = 32

	// MaxBytes is the greatest length of a file. Up to this length, no offset overflows.
	MaxBytes = 1 << 46
)

// The offsets of the words in page 0.
const (
	orderAt    = 8
	versionAt  = 16
	lengthAt   = 24
	textLenAt  = 32
	secretAt   = 40
	checksumAt = 72
)

// A Secret is the secret for the hashes of a table's keys.
type Secret [4]uint64

func writeHeader(page []byte, spec Spec, secret Secret) error {
	text := format(spec.Fields)
	if len(text) > pageBytes-textAt {
		return fmt.Errorf("the policies take %d bytes as text: want at most %d", len(text), pageBytes-textAt)
	}
	copy(page, magic)
	native := binary.NativeEndian
	native.PutUint64(page[orderAt:], orderMark)
	native.PutUint64(page[versionAt:], layoutVersion)
	native.PutUint64(page[lengthAt:], headerBytes+spec.Bytes)
	native.PutUint64(page[textLenAt:], uint64(len(text)))
	for i, word := range secret {
		native.PutUint64(page[secretAt+8*i:], word)
	}
	copy(page[textAt:], text)
	native.PutUint64(page[checksumAt:], checksum(page, len(text)))
	return nil
}

// checksum returns the checksum of page 0 with a text of the given length.
func checksum(page []byte, text int) uint64 {
	sum := xxhash.New()
	_, _ = sum.Write(page[:checksumAt]) // an error is impossible
	_, _ = sum.Write(page[textAt : textAt+text])
	return sum.Sum64()
}

// errForeign is the error for a file that is not the file of a shared table.
var errForeign = errors.New("this is not the file of a shared table")

// readHeader checks page 0 of a file with size bytes, and returns its content.
func readHeader(page []byte, size uint64) (fields []Field, secret Secret, err error) {
	native := binary.NativeEndian
	if string(page[:len(magic)]) != magic {
		return nil, Secret{}, errForeign
	}
	switch order := native.Uint64(page[orderAt:]); order {
	case orderMark:
	case bits.ReverseBytes64(orderMark):
		return nil, Secret{}, errors.New("byte order: the file was made on a machine with the opposite byte order")
	default:
		return nil, Secret{}, fmt.Errorf("byte order: the file says %#x: %w", order, errForeign)
	}
	if version := native.Uint64(page[versionAt:]); version != layoutVersion {
		return nil, Secret{}, fmt.Errorf("layout: the file has version %d, this program has version %d", version, layoutVersion)
	}
	text := native.Uint64(page[textLenAt:])
	if text > pageBytes-textAt || checksum(page, int(text)) != native.Uint64(page[checksumAt:]) {
		return nil, Secret{}, errors.New("checksum: the header is damaged")
	}
	if length := native.Uint64(page[lengthAt:]); length != size {
		return nil, Secret{}, fmt.Errorf("length: the file has %d bytes, its header says %d", size, length)
	}
	for i := range secret {
		secret[i] = native.Uint64(page[secretAt+8*i:])
	}
	return parse(string(page[textAt : textAt+text])), secret, nil
}

func format(fields []Field) string {
	var text strings.Builder
	for _, f := range fields {
		text.WriteString(f.Name + ": " + f.Value + "\n")
	}
	return text.String()
}

func parse(text string) (fields []Field) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		fields = append(fields, Field{name, value})
	}
	return fields
}

// difference returns an error that names the first field in which a file and a process differ, or nil.
func difference(file, process []Field) error {
	value := func(fields []Field, name string) string {
		for _, f := range fields {
			if f.Name == name {
				return f.Value
			}
		}
		return "none"
	}
	for _, fields := range [][]Field{process, file} {
		for _, f := range fields {
			if inFile, want := value(file, f.Name), value(process, f.Name); inFile != want {
				return fmt.Errorf("%s: the file has %q, this process wants %q", f.Name, inFile, want)
			}
		}
	}
	return nil
}
