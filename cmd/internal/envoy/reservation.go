package envoy

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir/cmd/internal/sealed"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
)

// reservations makes and reads the ids of reservations. The cost of a reservation is committed later. The id says which
// tokens its request has taken.
type reservations struct {
	sealer *sealed.Sealer
	uses   *sealed.Uses
	salt   [markBytes]byte // salt of marks; random for counters in memory, which only this process has
}

func newReservations(o Options) (*reservations, error) {
	const use = "reservations of weir-envoy"
	r := &reservations{sealer: sealed.New(use)}
	var err error
	if o.ReservationKey != "" {
		if r.sealer, err = sealed.FromFile(use, o.ReservationKey); err != nil {
			return nil, fmt.Errorf("envoy: ReservationKey: %w", err)
		}
	}
	if o.Store != nil {
		r.uses, err = sealed.NewStoredUses(o.ReservationLifetime, o.Store)
	} else {
		_, _ = rand.Read(r.salt[:]) // never fails
		r.uses, err = sealed.NewUses(o.ReservationLifetime, o.MaxKeys)
	}
	if err != nil {
		return nil, fmt.Errorf("envoy: ReservationLifetime: %w", err)
	}
	if o.Clock != nil {
		r.uses.WithClock(o.Clock)
	}
	return r, nil
}

const markBytes = 16

// A mark identifies the counter of a check in the id of a reservation.
type mark [markBytes]byte

// A marker makes marks. If its salt is nil, it makes none.
type marker struct{ salt []byte }

func (m marker) newMark(c *check, key []byte) (sum mark) {
	if m.salt == nil {
		return sum
	}
	limit := c.limit
	if c.rule != nil {
		limit = c.rule.Limit // not the value's own limit, which may change before the commit
	}
	hash := sha256.New()
	hash.Write(m.salt)
	hash.Write([]byte{byte(limit.Algorithm)})
	hash.Write(binary.LittleEndian.AppendUint64(nil, uint64(limit.Window)))
	if c := limit.Calendar; c != nil {
		hash.Write([]byte(c.String()))
	}
	hash.Write(key)
	copy(sum[:], hash.Sum(nil))
	return sum
}

// maxReserved bounds the limits of a reservation, so that an id has at most 8 KiB.
const maxReserved = 64

// A part describes the tokens that a reservation has taken from one counter.
type part struct {
	mark
	tokens  uint64
	receipt []byte
}

// encodeParts returns the content of an id. For each check that has taken tokens, it has a part with their receipt.
func encodeParts(checks []check) (text []byte) {
	for i := range checks {
		c := &checks[i]
		if c.charged == 0 {
			continue
		}
		var receipt []byte
		if hold, ok := c.hold.(*redislimit.Hold); ok {
			receipt = hold.Append(nil)
		} else {
			receipt = c.receipt.Append(nil)
		}
		text = append(text, c.mark[:]...)
		text = binary.AppendUvarint(text, c.charged)
		text = append(binary.AppendUvarint(text, uint64(len(receipt))), receipt...)
	}
	return text
}

// decodeParts returns the parts of an id. Since this service has sealed the text, an error means that another version
// of the program made it.
func decodeParts(text []byte) (parts []part, err error) {
	errVersion := status.Error(codes.InvalidArgument, "reservation_id: it is of another version of weir-envoy")
	for len(text) > 0 {
		if len(text) < markBytes {
			return nil, errVersion
		}
		p := part{mark: mark(text[:markBytes])}
		text = text[markBytes:]
		tokens, n := binary.Uvarint(text)
		if n <= 0 {
			return nil, errVersion
		}
		size, m := binary.Uvarint(text[n:])
		if text = text[n:]; m <= 0 || uint64(len(text)-m) < size {
			return nil, errVersion
		}
		p.tokens, p.receipt = tokens, bytes.Clone(text[m:m+int(size)])
		parts, text = append(parts, p), text[m+int(size):]
	}
	return parts, nil
}

// takePart returns the part of the counter that a mark identifies, and the remaining parts.
func takePart(parts []part, id mark) (p part, remaining []part, ok bool) {
	for i := range parts {
		if parts[i].mark == id {
			p = parts[i]
			return p, append(parts[:i:i], parts[i+1:]...), true
		}
	}
	return p, parts, false
}

// settle gives back the tokens that a request did not use. If the part does not say how many were taken, it gives
// nothing back.
func (c *check) settle(p part, actual uint64) {
	if actual >= p.tokens {
		return
	}
	switch t := c.table.(type) {
	case localTable:
		key := c.counter.hash
		if c.limit.Algorithm == engine.AlgorithmFixedWindow {
			quota, err := t.quota(c.limit)
			if err != nil {
				return
			}
			key = key.With(quota)
		}
		if receipt, err := t.limiter.ParseReceipt(key, p.receipt); err == nil {
			receipt.Settle(actual)
		}
	case storeTable:
		limiter, policy := t.limiterFor(c.limit)
		quota, err := limiter.Quota(policy)
		if err != nil {
			return
		}
		if hold, err := quota.ParseHold(c.counter.text, p.receipt); err == nil {
			hold.Settle(actual)
		}
	}
}
