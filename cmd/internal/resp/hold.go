package resp

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/cmd/internal/sealed"
	"github.com/weir-go/weir/engine"
)

// heldKeys bounds the bytes of all keys of a hold together, because the hold's id contains the keys.
const heldKeys = 4 << 10

// maxFor is the longest lifetime of a hold, in seconds. After its lifetime, the hold gives nothing back.
const maxFor = uint64(sealed.MaxLifetime / time.Second)

// cutFor cuts "FOR seconds" off the end of a command and parses the seconds. The command need not have this part.
func (b *batch) cutFor(args [][]byte) (rest [][]byte, asked time.Duration, ok bool) {
	n := len(args)
	if n < 4 || !isWord(args[n-2], "FOR") {
		return args, 0, true
	}
	seconds, ok := b.ranged("FOR", args[n-1], 1, maxFor)
	return args[:n-2], time.Duration(seconds) * time.Second, ok
}

// hold answers WEIR.HOLD key LIMIT rate [BURST n] [COST n] [FOR seconds].
func hold(c *conn, b *batch, args [][]byte) {
	args, asked, ok := b.cutFor(args)
	if !ok {
		return
	}
	l, ok := b.limit(args)
	if !ok {
		return
	}
	s := several{texts: [][]byte{args[1]}, limits: []limit{l}}
	if !b.ask(&s, true) {
		return
	}
	if id, _, ok := b.holdSeveral(c, &s, asked); ok {
		b.pairs(6)
		b.tellID(id)
		b.pairsOf(&s.answers[0].Decision)
	}
}

// holdAll answers WEIR.HOLDALL. This is WEIR.TAKEALL with FOR seconds. The answer has an id.
func holdAll(c *conn, b *batch, args [][]byte) {
	args, asked, ok := b.cutFor(args)
	if !ok {
		return
	}
	s, ok := b.severally(args, true)
	if !ok {
		return
	}
	if id, allowed, ok := b.holdSeveral(c, &s, asked); ok {
		b.pairs(3)
		b.tellID(id)
		b.bulk("allowed")
		b.boolean(allowed)
		b.tell(&s)
	}
}

func (b *batch) tellID(id string) {
	b.bulk("id")
	if id == "" {
		b.null()
	} else {
		b.bulk(id)
	}
}

// holdSeveral takes the estimates from all keys or from none, and makes the id of the hold.
func (b *batch) holdSeveral(c *conn, s *several, asked time.Duration) (id string, allowed, ok bool) {
	size := 0
	for _, text := range s.texts {
		size += len(text)
	}
	if size > heldKeys {
		b.fail(fmt.Sprintf("ERR keys of %d bytes together: want at most %d of what is held", size, heldKeys))
		return "", false, false
	}
	if allowed, ok = b.takeSeveral(s); !ok || !allowed {
		return "", allowed, ok
	}
	var text []byte
	for i := range s.answers {
		p, table := s.limits[i].policy, ""
		if s.requests[i].Limiter != b.limiter {
			table = s.limits[i].name
		}
		text = appendText(appendText(text, string(s.texts[i])), table)
		if table == "" {
			text = binary.LittleEndian.AppendUint64(text, math.Float64bits(p.Rate().Tokens))
			text = binary.LittleEndian.AppendUint64(text, uint64(p.Rate().Period))
			text = binary.LittleEndian.AppendUint64(text, p.Limit())
		}
		text = s.answers[i].Receipt.Append(text)
	}
	return c.settings.Holds.Sealer.Seal(text, c.settings.Holds.Uses.Expires(asked)), true, true
}

// A holding is the part of an id that describes one key.
type holding struct {
	key     engine.Key
	receipt engine.Receipt
}

// open returns the holdings of an id. The parameter text is the content of an id that this program has sealed.
func (b *batch) open(text []byte) (all []holding, err error) {
	for len(text) > 0 {
		name, rest, ok := cutText(text)
		table, rest, ok2 := cutText(rest)
		if !ok || !ok2 {
			return nil, sealed.ErrForged // sealed by another version
		}
		in, quota := Table{b.limiter, b.formers}, engine.Quota{}
		if len(table) == 0 {
			quota, rest, err = b.cutQuota(rest)
		} else if in, ok = b.fileTables[string(table)]; !ok {
			err = fmt.Errorf("the limit '%s' is no longer in the rule file, or has become a token bucket", table)
		}
		if err == nil && len(rest) < engine.ReceiptBytes {
			err = sealed.ErrForged
		}
		if err != nil {
			return nil, err
		}
		h := holding{key: in.key(name, quota)}
		if h.receipt, err = in.Limiter.ParseReceipt(h.key, rest[:engine.ReceiptBytes]); err != nil {
			return nil, err
		}
		all, text = append(all, h), rest[engine.ReceiptBytes:]
	}
	return all, nil
}

// cutQuota cuts the numbers of a limit off the beginning of text, and returns the limit as a quota.
func (b *batch) cutQuota(text []byte) (quota engine.Quota, rest []byte, err error) {
	const size = 24
	if len(text) < size {
		return quota, nil, sealed.ErrForged
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(text[8*i:]) }
	quota, err = b.limiter.Quota(engine.TokenBucket(engine.Per(math.Float64frombits(word(0)), time.Duration(word(1))), word(2)))
	return quota, text[size:], err
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

func cutText(from []byte) (text, rest []byte, ok bool) {
	size, n := binary.Uvarint(from)
	if n <= 0 || size > heldKeys || uint64(len(from)-n) < size {
		return nil, nil, false
	}
	return from[n : n+int(size)], from[n+int(size):], true
}

var outcomes = map[sealed.Use]string{
	sealed.First: "settled", sealed.Late: "late", sealed.NoRoom: "late", sealed.Repeated: "repeated",
}

// settle answers WEIR.SETTLE id cost.
func settle(c *conn, b *batch, args [][]byte) {
	cost, ok := b.ranged("cost", args[2], 0, maxTokens)
	if !ok {
		return
	}
	opened, err := c.settings.Holds.Sealer.Open(string(args[1]))
	var all []holding
	if err == nil {
		all, err = b.open(opened.Receipt)
	}
	use := sealed.Repeated
	if err == nil {
		use, err = c.settings.Holds.Uses.Use(context.Background(), opened)
	}
	if err != nil {
		b.fail("ERR " + err.Error())
		return
	}
	lost := uint64(0)
	for i := range all {
		switch r := &all[i].receipt; {
		case use == sealed.First:
			lost += r.Settle(cost)
		case use != sealed.Repeated && cost > r.Taken():
			lost += r.Charge(cost - r.Taken())
		}
	}
	b.pairs(2)
	b.bulk("outcome")
	b.bulk(outcomes[use])
	b.bulk("lost")
	b.integer(int64(min(lost, maxTokens)))
}
