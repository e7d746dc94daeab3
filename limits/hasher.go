package limits

import (
	"net/netip"
	"strconv"
	"sync"

	"github.com/weir-go/weir/engine"
)

// A Hasher makes the keys of one limit, by the methods of [engine.Limiter], without allocating. A [KeyFunc] gets the
// Hasher of its limit.
type Hasher struct {
	limiter *engine.Limiter
	record  *record // set instead of limiter if the text of the key is needed
}

// HasherOf returns the Hasher of a limiter, to call a [KeyFunc] yourself, for example to reset the key of a request.
func HasherOf(l *engine.Limiter) Hasher { return Hasher{limiter: l} }

// Key returns the key of a text: see [engine.Limiter.Key].
func (h Hasher) Key(text string) engine.Key {
	if h.record != nil {
		h.record.text = append(append(h.record.text[:0], "text:"...), text...)
		return engine.Key{}
	}
	return h.limiter.Key(text)
}

// KeyBytes returns the same key as Key(string(text)). It does not keep the slice.
func (h Hasher) KeyBytes(text []byte) engine.Key {
	if h.record != nil {
		h.record.text = append(append(h.record.text[:0], "text:"...), text...)
		return engine.Key{}
	}
	return h.limiter.KeyBytes(text)
}

// KeyAddr returns the key of an address: see [engine.Limiter.KeyAddr].
func (h Hasher) KeyAddr(addr netip.Addr) engine.Key {
	if h.record != nil {
		h.record.text = append(h.record.text[:0], "ip:"...)
		h.record.text = addr.Unmap().WithZone("").AppendTo(h.record.text)
		return engine.Key{}
	}
	return h.limiter.KeyAddr(addr)
}

// KeyUint64 returns the key of a number: see [engine.Limiter.KeyUint64].
func (h Hasher) KeyUint64(n uint64) engine.Key {
	if h.record != nil {
		h.record.text = strconv.AppendUint(append(h.record.text[:0], "number:"...), n, 10)
		return engine.Key{}
	}
	return h.limiter.KeyUint64(n)
}

// A record is for a Hasher without a limiter, which makes texts instead of keys.
type record struct {
	text []byte
}

// Join makes one key of several parts, without allocating. It calls the function part once for each part, with the
// part's number i and a Hasher for the part's key. If a call returns false, Join returns false, too. The key contains
// the kind and the length of each part.
func (h Hasher) Join(parts int, part func(h Hasher, i int) (limited bool)) (engine.Key, bool) {
	s := scratches.Get().(*scratch)
	defer s.release()
	s.joined = s.joined[:0]
	for i := range parts {
		s.part.text = s.part.text[:0]
		if !part(Hasher{record: &s.part}, i) {
			return engine.Key{}, false
		}
		s.joined = strconv.AppendInt(s.joined, int64(len(s.part.text)), 10)
		s.joined = append(append(s.joined, ':'), s.part.text...)
	}
	return h.KeyBytes(s.joined), true
}

type scratch struct {
	part   record
	joined []byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// maxScratch is the largest buffer, in bytes, that is kept for the next request. Some headers have a megabyte.
const maxScratch = 4 << 10

func (s *scratch) release() {
	if cap(s.joined) <= maxScratch && cap(s.part.text) <= maxScratch {
		scratches.Put(s)
	}
}
