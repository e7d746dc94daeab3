package shard

import (
	"encoding/binary"

	"github.com/weir-go/weir/atomicbucket"
)

// ReceiptBytes is how many bytes [Receipt.Append] appends.
const ReceiptBytes = 48

// Append appends the content of the receipt, for [Table.ReadReceipt]. The text is valid only for the table of the take.
func (r *Receipt) Append(to []byte) []byte {
	token, tokens := r.quota.token, r.quota.packed // these values are right for a tier, and for a quota without numbers
	if token != 0 && token < blockedToken {
		tokens = r.quota.packed&(1<<unitShift-1) + 1 // without the unit: the number of its plan is appended below
	}
	number := r.number
	if r.plan == nil {
		number = 0
	}
	to = binary.LittleEndian.AppendUint64(to, uint64(r.after))
	to = binary.LittleEndian.AppendUint64(to, uint64(r.at))
	to = binary.LittleEndian.AppendUint64(to, r.n)
	to = binary.LittleEndian.AppendUint64(to, token)
	to = binary.LittleEndian.AppendUint64(to, tokens)
	to = binary.LittleEndian.AppendUint32(to, r.ends)
	return binary.LittleEndian.AppendUint32(to, number)
}

// ReadTokens returns the number of tokens of a receipt, from the [ReceiptBytes] bytes that [Receipt.Append] appended.
func ReadTokens(text []byte) uint64 { return binary.LittleEndian.Uint64(text[16:]) }

// ReadReceipt returns a receipt, from the [ReceiptBytes] bytes that [Receipt.Append] appended. If the plan of the take
// has been replaced since (R15), the receipt identifies no take, even if it is for a log.
func (t *Table) ReadReceipt(text []byte) (r Receipt) {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(text[8*i:]) }
	plan, token, tokens := t.Plan(), word(3), word(4)
	r.n, r.quota = word(2), Quota{token, tokens}
	if token != 0 && token < blockedToken {
		r.quota = plan.NewQuota(atomicbucket.Quota{Token: token, Tokens: tokens})
	}
	if number := binary.LittleEndian.Uint32(text[44:]); number != 0 && number == plan.number {
		r.plan, r.after, r.at, r.number = plan, atomicbucket.State(word(0)), int64(word(1)), number
		r.ends = binary.LittleEndian.Uint32(text[40:])
	}
	return r
}
