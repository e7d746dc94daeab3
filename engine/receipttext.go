package engine

import (
	"encoding/binary"
	"fmt"

	"github.com/weir-go/weir/shard"
)

// ReceiptBytes is the length in bytes of the text of a receipt ([Receipt.Append]).
const ReceiptBytes = 16 + shard.ReceiptBytes

// Append appends 64 bytes for the receipt. [Limiter.ParseReceipt] makes the receipt again from these bytes, for a
// request that begins on one connection and ends on another. Append does not end the receipt.
//
// Anyone who can write such bytes can give tokens back. Each receipt made from the same bytes gives back the same
// tokens. So seal the bytes, and end only one of these receipts. A receipt from the bytes of a [Spread] gives nothing
// back.
func (r *Receipt) Append(to []byte) []byte {
	var id uint64
	if r.limiter != nil { // the receipt is not of a Spread
		id = r.limiter.id
	}
	to = binary.LittleEndian.AppendUint64(to, id)
	to = binary.LittleEndian.AppendUint64(to, r.hash)
	return r.tableReceipt.Append(to)
}

// ParseReceipt returns the receipt that [Receipt.Append] wrote as text. k must be the key of the take. For another key
// of the same limiter, and for a text of another length, ParseReceipt returns an error. It allocates only for errors.
//
// A receipt of another limiter, of an earlier process, or from before a [Limiter.SetPolicy] gives nothing back. Its
// [Receipt.Taken] still returns how many tokens were taken, and a cost above that number is charged to k.
func (l *Limiter) ParseReceipt(k Key, text []byte) (r Receipt, err error) {
	l.requireMade()
	if len(text) != ReceiptBytes {
		return r, fmt.Errorf("engine: ParseReceipt: a text of %d bytes: want %d", len(text), ReceiptBytes)
	}
	id, hash := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
	r.limiter, r.hash = l, k.hash
	if id != l.id {
		r.tableReceipt.EnterNone(shard.ReadTokens(text[16:]), k.quota)
		return r, nil
	}
	if hash != k.hash {
		return Receipt{}, fmt.Errorf("engine: ParseReceipt: the receipt of another key")
	}
	if r.tableReceipt = l.table.ReadReceipt(text[16:]); !r.tableReceipt.IsKnown() {
		r.tableReceipt.EnterNone(r.tableReceipt.Tokens(), k.quota)
	}
	return r, nil
}
