package engine

import (
	"encoding/binary"
	"fmt"

	"github.com/weir-go/weir/shard"
)

// ReceiptBytes is the length in bytes of the text of a receipt ([Receipt.Append]). The text has the limiter, the key,
// and the take.
const ReceiptBytes = 16 + shard.ReceiptBytes

// Append appends the receipt as 64 bytes. [Limiter.ParseReceipt] makes a receipt from these bytes again. Append is for
// a request that begins on one connection and ends on another, so that no process must keep the receipt in the
// meantime. Append does not end the receipt.
//
// Anyone who can write such bytes can give tokens back, and each receipt that is made from the same bytes gives the
// same tokens back again. So seal the bytes, and end only one of the receipts that are made from them. The bytes of a
// receipt of a [Spread] make a receipt that gives nothing back.
func (r *Receipt) Append(to []byte) []byte {
	var limiter uint64
	if r.limiter != nil { // the receipt is not of a Spread
		limiter = r.limiter.number
	}
	to = binary.LittleEndian.AppendUint64(to, limiter)
	to = binary.LittleEndian.AppendUint64(to, r.hash)
	return r.of.Append(to)
}

// ParseReceipt returns the receipt that [Receipt.Append] wrote as text. The parameter k must be the key of the take.
// For another key of the same limiter, and for a text of another length, ParseReceipt returns an error.
//
// A receipt of another limiter, of an earlier process, or from before a [Limiter.SetPolicy] gives nothing back. Its
// [Receipt.Taken] still returns how many tokens were taken, and a cost above that number is charged to k. ParseReceipt
// does not allocate, except for errors.
func (l *Limiter) ParseReceipt(k Key, text []byte) (r Receipt, err error) {
	l.requireMade()
	if len(text) != ReceiptBytes {
		return r, fmt.Errorf("engine: ParseReceipt: a text of %d bytes: want %d", len(text), ReceiptBytes)
	}
	limiter, hash := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
	r.limiter, r.hash = l, k.hash
	if limiter != l.number {
		r.of.EnterNone(shard.ReadTokens(text[16:]), k.quota)
		return r, nil
	}
	if hash != k.hash {
		return Receipt{}, fmt.Errorf("engine: ParseReceipt: the receipt of another key")
	}
	if r.of = l.table.ReadReceipt(text[16:]); !r.of.IsKnown() {
		r.of.EnterNone(r.of.Tokens(), k.quota)
	}
	return r, nil
}
