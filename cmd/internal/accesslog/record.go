package accesslog

import (
	"encoding/binary"
	"slices"
	"time"
)

// A record is an entry as bytes: the time, then the numbers, then the texts, each after its length.

// appendEntry appends the record of an entry, without its Memo.
func appendEntry(b []byte, e *Entry) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time.UnixNano()))
	for _, n := range []int64{int64(e.file), int64(e.line), int64(e.Late), int64(e.Status), e.Size} {
		b = binary.AppendVarint(b, n)
	}
	for _, text := range e.texts() {
		b = appendText(b, *text)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Headers)))
	for i := range e.Headers {
		b = appendText(appendText(b, e.Headers[i].Name), e.Headers[i].Value)
	}
	return b
}

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

const timeBytes = 8

func recordOf(b []byte) record {
	file, _ := binary.Varint(b[timeBytes:])
	return record{int64(binary.BigEndian.Uint64(b)), int(file), b}
}

// parse fills the entry from a record. The entry uses the bytes of the record. names has the names of header fields.
func (e *Entry) parse(r record, names map[string]string) {
	b := r.text[timeBytes:]
	number := func() int64 {
		n, size := binary.Varint(b)
		b = b[size:]
		return n
	}
	text := func() []byte {
		n, size := binary.Uvarint(b)
		t := b[size : size+int(n) : size+int(n)]
		b = b[size+int(n):]
		return t
	}
	*e = Entry{Time: time.Unix(0, r.nanos).UTC(), Headers: e.Headers[:0]}
	e.file, e.line, e.Late, e.Status, e.Size = int(number()), int(number()), time.Duration(number()), int(number()), number()
	for _, part := range e.texts() {
		*part = text()
	}
	headers, size := binary.Uvarint(b)
	b = b[size:]
	e.Headers = slices.Grow(e.Headers, int(headers))
	for range headers {
		storedName := text()
		name, ok := names[string(storedName)]
		if !ok {
			if name = string(storedName); len(names) < maxNames {
				names[name] = name
			}
		}
		e.Headers = append(e.Headers, Header{name, text()})
	}
}
