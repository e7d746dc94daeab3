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

// A mark identifies the counter of an ask in the id of a reservation.
type mark [markBytes]byte

// A marker makes marks. If its salt is nil, it makes none.
type marker struct{ salt []byte }

func (m marker) of(a *ask, key []byte) (of mark) {
	if m.salt == nil {
		return of
	}
	limit := a.limit
	if a.rule != nil {
		limit = a.rule.Limit // not the value's own limit, which may change before the commit
	}
	hash := sha256.New()
	hash.Write(m.salt)
	hash.Write([]byte{byte(limit.Algorithm)})
	hash.Write(binary.LittleEndian.AppendUint64(nil, uint64(limit.Window)))
	if c := limit.Calendar; c != nil {
		hash.Write([]byte(c.String()))
	}
	hash.Write(key)
	copy(of[:], hash.Sum(nil))
	return of
}

// maxReserved bounds the limits of a reservation, so that an id has at most 8 KiB.
const maxReserved = 64

// A part describes the tokens that a reservation has taken from one counter.
type part struct {
	mark
	taken   uint64
	receipt []byte
}

// parts returns the text of an id. For each ask, it has a receipt of the tokens that the ask has taken.
func parts(asks []ask) (text []byte) {
	for i := range asks {
		a := &asks[i]
		if a.charged == 0 {
			continue
		}
		var receipt []byte
		if held, ok := a.held.(*redislimit.Hold); ok {
			receipt = held.Append(nil)
		} else {
			receipt = a.receipt.Append(nil)
		}
		text = append(text, a.mark[:]...)
		text = binary.AppendUvarint(text, a.charged)
		text = append(binary.AppendUvarint(text, uint64(len(receipt))), receipt...)
	}
	return text
}

// read returns the parts of an id. Since this service has sealed the text, an error means that another version of the
// program made it.
func read(text []byte) (all []part, err error) {
	bad := status.Error(codes.InvalidArgument, "reservation_id: it is of another version of weir-envoy")
	for len(text) > 0 {
		if len(text) < markBytes {
			return nil, bad
		}
		p := part{mark: mark(text[:markBytes])}
		text = text[markBytes:]
		taken, n := binary.Uvarint(text)
		if n <= 0 {
			return nil, bad
		}
		size, m := binary.Uvarint(text[n:])
		if text = text[n:]; m <= 0 || uint64(len(text)-m) < size {
			return nil, bad
		}
		p.taken, p.receipt = taken, bytes.Clone(text[m:m+int(size)])
		all, text = append(all, p), text[m+int(size):]
	}
	return all, nil
}

// take returns the part of the counter that a mark identifies, and the remaining parts.
func take(all []part, of mark) (p part, rest []part, ok bool) {
	for i := range all {
		if all[i].mark == of {
			p = all[i]
			return p, append(all[:i:i], all[i+1:]...), true
		}
	}
	return p, all, false
}

// settle gives back the tokens that a request did not use. If the part does not say how many were taken, it gives
// nothing back.
func (a *ask) settle(p part, actual uint64) {
	if actual >= p.taken {
		return
	}
	switch t := a.table.(type) {
	case localTable:
		key := a.counter.hash
		if a.limit.Algorithm == engine.AlgorithmFixedWindow {
			quota, err := t.quota(a.limit)
			if err != nil {
				return
			}
			key = key.With(quota)
		}
		if receipt, err := t.limiter.ParseReceipt(key, p.receipt); err == nil {
			receipt.Settle(actual)
		}
	case storeTable:
		limiter, policy := t.under(a.limit)
		quota, err := limiter.Quota(policy)
		if err != nil {
			return
		}
		if hold, err := quota.ParseHold(a.counter.text, p.receipt); err == nil {
			hold.Settle(actual)
		}
	}
}
