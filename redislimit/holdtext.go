package redislimit

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// holdBytes is the length of the text of a hold.
const holdBytes = 41

// process identifies this process, so that its holds differ from the holds of other processes.
var process = rand.Uint64()

// Append appends the hold as 41 bytes. [Limiter.ParseHold] makes the hold again from these bytes, in any process that
// uses the same store. Use Append for a request whose end another node reports. Append does not settle the hold.
//
// Anyone who can write these bytes can give tokens back, and each hold that is made from them gives back the same
// tokens again. So seal the bytes, and settle only one of the holds that are made from them.
func (h *Hold) Append(to []byte) []byte {
	to = append(to, byte(h.from))
	to = binary.LittleEndian.AppendUint64(to, process)
	to = binary.LittleEndian.AppendUint64(to, h.quota.fingerprint(h.key))
	to = binary.LittleEndian.AppendUint64(to, h.taken)
	to = binary.LittleEndian.AppendUint64(to, uint64(h.window))
	return binary.LittleEndian.AppendUint64(to, uint64(h.end))
}

// ParseHold makes a hold from a text that [Hold.Append] has appended. The parameter key must be the key of that hold.
// ParseHold returns an error if the length of the text is wrong.
//
// In two cases, the hold gives nothing back. The first is that the text comes from a hold of another key or limit. The
// second is that another process had the tokens in hand by a lease, or admitted them by its share. In both cases,
// [Hold.Taken] still returns the tokens taken, and if the request costs more than these tokens, the difference is
// charged to the key.
func (l *Limiter) ParseHold(key string, text []byte) (*Hold, error) {
	return l.own.ParseHold(key, text)
}

// ParseHold is [Limiter.ParseHold] under the quota, which should be the quota of the hold.
func (q Quota) ParseHold(key string, text []byte) (*Hold, error) {
	if len(text) != holdBytes {
		return new(Hold), fmt.Errorf("redislimit: ParseHold: a text of %d bytes: want %d", len(text), holdBytes)
	}
	if _, fixed, err := q.fixed(); fixed {
		return new(Hold), err
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(text[1+8*i:]) }
	h := &Hold{quota: q, key: key, taken: word(2), from: origin(text[0]), window: int64(word(3)), end: int64(word(4))}
	if h.from != fromStore && word(0) != process || word(1) != q.fingerprint(key) {
		h.from = fromNowhere
	}
	return h, nil
}

// fingerprint returns a number that distinguishes keys and limits.
func (q *Quota) fingerprint(key string) uint64 {
	hash := fnv.New64a()
	if q.limiter != nil {
		_, _ = fmt.Fprintf(hash, "%s\x00%v\x00%s", q.limiter.namer.after, q.policy, key)
	}
	return hash.Sum64()
}
