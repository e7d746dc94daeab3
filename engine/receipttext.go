package engine

import (
	"encoding/binary"
	"fmt"

	"github.com/weir-go/weir/shard"
)

// ReceiptBytes is how long the text of a receipt is ([Receipt.Append]): the limiter, the key, and the take.
const ReceiptBytes = 16 + shard.ReceiptBytes

// Append appends the receipt as 64 bytes, from which [Limiter.ParseReceipt] makes a receipt again: for a request whose
// end another connection reports, so that nobody keeps the receipt meanwhile. It does not end the receipt.
//
// Whoever can write the bytes can give tokens back, and each receipt made of them gives back the same tokens again. So
// seal them, and end only one of them. The receipt of a take from a [Spread] becomes one that gives nothing back.
func (r *Receipt) Append(to []byte) []byte {
	var limiter uint64
	if r.limiter != nil && r.spread == nil {
		limiter = r.limiter.number
	}
	to = binary.LittleEndian.AppendUint64(to, limiter)
	to = binary.LittleEndian.AppendUint64(to, r.hash)
	return r.of.Append(to)
}

// ParseReceipt returns the receipt of which text is what [Receipt.Append] appended. k is the key of the take: another
// key of the same limiter is an error, and so is a text of another length.
//
// A receipt of another limiter, or of a former process, and one from before [Limiter.SetPolicy], gives nothing back.
// [Receipt.Taken] is what was taken, and what the request costs beyond that is charged to k. ParseReceipt does not
// allocate, but for errors.
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
