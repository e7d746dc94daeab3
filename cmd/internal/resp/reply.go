package resp

import (
	"strconv"
	"time"
)

// A reply collects answers, in RESP2 or RESP3.
type reply struct {
	out   []byte
	resp3 bool
}

func (r *reply) line(kind byte, text string) {
	r.out = append(append(append(r.out, kind), text...), '\r', '\n')
}

func (r *reply) ok() { r.out = append(r.out, "+OK\r\n"...) }

func (r *reply) header(kind byte, n int64) {
	r.out = append(strconv.AppendInt(append(r.out, kind), n, 10), '\r', '\n')
}

func (r *reply) integer(n int64) { r.header(':', n) }

func (r *reply) array(n int) { r.header('*', int64(n)) }

// pairs begins a map of n pairs. In RESP2, the map is an array of 2n elements.
func (r *reply) pairs(n int) {
	if r.resp3 {
		r.header('%', int64(n))
	} else {
		r.array(2 * n)
	}
}

func (r *reply) bulk(text string) {
	r.header('$', int64(len(text)))
	r.out = append(append(r.out, text...), '\r', '\n')
}

func (r *reply) bulkBytes(text []byte) {
	r.header('$', int64(len(text)))
	r.out = append(append(r.out, text...), '\r', '\n')
}

// text writes a text for people. In RESP3, it is a verbatim string, and in RESP2 a bulk string.
func (r *reply) text(text string) {
	if !r.resp3 {
		r.bulk(text)
		return
	}
	r.header('=', int64(len(text)+4))
	r.out = append(append(append(r.out, "txt:"...), text...), '\r', '\n')
}

func (r *reply) null() {
	if r.resp3 {
		r.out = append(r.out, "_\r\n"...)
	} else {
		r.out = append(r.out, "$-1\r\n"...)
	}
}

// boolean writes a boolean; in RESP2, an integer.
func (r *reply) boolean(value bool) {
	switch {
	case !r.resp3 && value:
		r.integer(1)
	case !r.resp3:
		r.integer(0)
	case value:
		r.out = append(r.out, "#t\r\n"...)
	default:
		r.out = append(r.out, "#f\r\n"...)
	}
}

// seconds writes a time in seconds. In RESP3, it is a double, and in RESP2 a bulk string.
func (r *reply) seconds(d time.Duration) {
	var buf [24]byte
	text := appendSeconds(buf[:0], d)
	if r.resp3 {
		r.out = append(append(append(r.out, ','), text...), '\r', '\n')
	} else {
		r.bulkBytes(text)
	}
}

// appendSeconds appends a time in seconds, with up to nine decimals and no zeros at the end.
func appendSeconds(dst []byte, d time.Duration) []byte {
	if d < 0 {
		return append(dst, "-1"...) // callers pass -1 instead of engine.Never
	}
	dst = strconv.AppendInt(dst, int64(d/time.Second), 10)
	fraction := int64(d % time.Second)
	if fraction == 0 {
		return dst
	}
	dst = append(dst, '.')
	for unit := int64(time.Second / 10); fraction > 0; unit /= 10 {
		dst = append(dst, byte('0'+fraction/unit))
		fraction %= unit
	}
	return dst
}

func ceilSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}

// maxClip is how many bytes of a client's text an error repeats.
const maxClip = 128

// errorLine writes an error as one line of printable ASCII, because the text may contain data of the client.
func (r *reply) errorLine(text string) {
	r.out = append(r.out, '-')
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c > '~' {
			c = '?'
		}
		r.out = append(r.out, c)
	}
	r.out = append(r.out, '\r', '\n')
}

func clip(text []byte) string {
	if len(text) > maxClip {
		return string(text[:maxClip]) + "..."
	}
	return string(text)
}
