package redislimit

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

const holdBytes = 41

// process identifies this process in the bytes of holds.
var process = rand.Uint64()

// Append appends the hold as 41 bytes, for a request whose end another node reports. [Limiter.ParseHold] makes the hold
// again. Append does not settle the hold.
//
// Anyone who can write these bytes can give tokens back, and each hold made from them gives back the same tokens again.
// So seal the bytes, and settle only one of these holds.
func (h *Hold) Append(to []byte) []byte {
	to = append(to, byte(h.origin))
	to = binary.LittleEndian.AppendUint64(to, process)
	to = binary.LittleEndian.AppendUint64(to, h.quota.fingerprint(h.key))
	to = binary.LittleEndian.AppendUint64(to, h.taken)
	to = binary.LittleEndian.AppendUint64(to, uint64(h.window))
	return binary.LittleEndian.AppendUint64(to, uint64(h.end))
}

// ParseHold makes a hold from the bytes of [Hold.Append], in any process that uses the same store. The argument key
// must be the key of that hold. ParseHold returns an error if the length of the text is wrong.
//
// In two cases the hold gives nothing back: the text is of another key or limit, or another process took the tokens
// from its lease or share. Even then, [Hold.Taken] returns the tokens taken, and a cost above them is charged to the
// key.
func (l *Limiter) ParseHold(key string, text []byte) (*Hold, error) {
	return l.ownQuota.ParseHold(key, text)
}

// ParseHold is [Limiter.ParseHold] for a hold that was taken under this quota.
func (q Quota) ParseHold(key string, text []byte) (*Hold, error) {
	if len(text) != holdBytes {
		return new(Hold), fmt.Errorf("redislimit: ParseHold: a text of %d bytes: want %d", len(text), holdBytes)
	}
	if _, ok, err := q.constantDecision(); ok {
		return new(Hold), err
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(text[1+8*i:]) }
	h := &Hold{quota: q, key: key, taken: word(2), origin: origin(text[0]), window: int64(word(3)), end: int64(word(4))}
	if h.origin != fromStore && word(0) != process || word(1) != q.fingerprint(key) {
		h.origin = fromNowhere
	}
	return h, nil
}

// fingerprint returns a number that distinguishes keys and limits.
func (q *Quota) fingerprint(key string) uint64 {
	hash := fnv.New64a()
	if q.limiter != nil {
		_, _ = fmt.Fprintf(hash, "%s\x00%v\x00%s", q.limiter.namer.suffix, q.policy, key)
	}
	return hash.Sum64()
}
