// Package workload makes the keys and the order of requests for every row, before any measurement starts.
package workload

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
	"unsafe"
)

// A Stream contains the keys of requests in their order, as text.
//
// The texts follow each other in memory, as in a server's buffers, so only the limiter causes cache misses. The garbage
// collector has no pointers of a Stream to scan.
type Stream struct {
	text  []byte
	spans []span
	due   []time.Duration // when each request is due after the start, or nil
	lap   time.Duration   // how long a stream with such times takes
}

// A span is the position of a key in the text. The text is at most 4 GiB long.
type span struct{ from, length uint32 }

// Len returns the number of requests.
func (s *Stream) Len() int { return len(s.spans) }

// At returns the key of request i. It stays valid as long as the stream is reachable.
func (s *Stream) At(i int) string {
	at := s.spans[i]
	return unsafe.String(&s.text[at.from], at.length)
}

// Due returns the time from the start of the stream until request i is due. Only rows with [Row.Everyday] have due
// times.
func (s *Stream) Due(i int) time.Duration { return s.due[i] }

// Lap returns how long one pass through the stream takes, or 0 without due times. After a pass, the first request is
// due again.
func (s *Stream) Lap() time.Duration { return s.lap }

// With returns the same requests, with suffix after each key.
func (s *Stream) With(suffix string) *Stream {
	longer := newStream(s.Len())
	for i := range s.Len() {
		longer.addText(s.At(i) + suffix)
	}
	longer.due, longer.lap = s.due, s.lap
	return longer
}

func (s *Stream) addText(key string) {
	from := len(s.text)
	s.text = append(s.text, key...)
	s.spans = append(s.spans, span{uint32(from), uint32(len(key))})
}

func (s *Stream) add(n uint64) {
	from := len(s.text)
	s.text = appendKey(s.text, n)
	s.spans = append(s.spans, span{uint32(from), uint32(len(s.text) - from)})
}

// repeat appends the requests again, each time in another order, until there are at least n. Repetitions share the text
// of the keys.
func (s *Stream) repeat(n int, dice *rand.Rand) {
	for all := slices.Clone(s.spans); len(s.spans) < n; {
		dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		s.spans = append(s.spans, all...)
	}
}

func newStream(n int) *Stream {
	const length = 28 // of a key; the average is 25
	return &Stream{text: make([]byte, 0, n*length), spans: make([]span, 0, n)}
}

// appendKey appends the n-th key, of 12 to 40 bytes: an address with a port, a user of a tenant, or an API key.
// Different n below 2^40 give different keys.
func appendKey(b []byte, n uint64) []byte {
	switch n % 3 {
	case 0:
		b = strconv.AppendUint(b, 10+n>>24, 10)
		for shift := 16; shift >= 0; shift -= 8 {
			b = append(b, '.')
			b = strconv.AppendUint(b, n>>shift&255, 10)
		}
		b = append(b, ':')
		return strconv.AppendUint(b, 10000+n%9999, 10)
	case 1:
		b = append(b, "tenant-"...)
		b = strconv.AppendUint(b, n%97, 10)
		b = append(b, "/user-"...)
		return strconv.AppendUint(b, n, 10)
	}
	b = append(b, "key_live_"...)
	b = strconv.AppendUint(b, mix(n)|1<<63, 16)
	b = append(b, '_')
	return strconv.AppendUint(b, n, 16)
}

// mix maps n to another number of 64 bits, one to one. It is the finalizer of SplitMix64.
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// random returns random numbers, the same for a seed in every process of a run.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
