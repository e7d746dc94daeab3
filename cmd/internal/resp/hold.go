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

// maxHoldKeys bounds the bytes of all keys of a hold together, because the hold's id contains the keys.
const maxHoldKeys = 4 << 10

// maxHoldSeconds is the longest lifetime of a hold. After its lifetime, the hold gives nothing back.
const maxHoldSeconds = uint64(sealed.MaxLifetime / time.Second)

// cutFor cuts "FOR seconds" off the end of a command and parses the seconds. The command need not have this part.
func (b *batch) cutFor(args [][]byte) (rest [][]byte, lifetime time.Duration, ok bool) {
	n := len(args)
	if n < 4 || !isWord(args[n-2], "FOR") {
		return args, 0, true
	}
	seconds, ok := b.parseInRange("FOR", args[n-1], 1, maxHoldSeconds)
	return args[:n-2], time.Duration(seconds) * time.Second, ok
}

// hold answers WEIR.HOLD key LIMIT rate [BURST n] [COST n] [FOR seconds].
func hold(c *conn, b *batch, args [][]byte) {
	args, lifetime, ok := b.cutFor(args)
	if !ok {
		return
	}
	l, ok := b.parseLimit(args)
	if !ok {
		return
	}
	take := multiTake{keyTexts: [][]byte{args[1]}, limits: []limit{l}}
	if !b.makeRequests(&take, true) {
		return
	}
	if id, _, ok := b.holdMulti(c, &take, lifetime); ok {
		b.pairs(6)
		b.writeID(id)
		b.decisionPairs(&take.answers[0].Decision)
	}
}

// holdAll answers WEIR.HOLDALL. This is WEIR.TAKEALL with FOR seconds. The answer has an id.
func holdAll(c *conn, b *batch, args [][]byte) {
	args, lifetime, ok := b.cutFor(args)
	if !ok {
		return
	}
	take, ok := b.parseMultiTake(args, true)
	if !ok {
		return
	}
	if id, allowed, ok := b.holdMulti(c, &take, lifetime); ok {
		b.pairs(3)
		b.writeID(id)
		b.bulk("allowed")
		b.boolean(allowed)
		b.writeLimits(&take)
	}
}

func (b *batch) writeID(id string) {
	b.bulk("id")
	if id == "" {
		b.null()
	} else {
		b.bulk(id)
	}
}

// holdMulti takes the estimates from all keys or from none, and makes the id of the hold.
func (b *batch) holdMulti(c *conn, take *multiTake, lifetime time.Duration) (id string, allowed, ok bool) {
	size := 0
	for _, text := range take.keyTexts {
		size += len(text)
	}
	if size > maxHoldKeys {
		b.fail(fmt.Sprintf("ERR keys of %d bytes together: want at most %d of what is held", size, maxHoldKeys))
		return "", false, false
	}
	if allowed, ok = b.takeMulti(take); !ok || !allowed {
		return "", allowed, ok
	}
	var text []byte
	for i := range take.answers {
		policy, tableName := take.limits[i].policy, ""
		if take.requests[i].Limiter != b.limiter {
			tableName = take.limits[i].name
		}
		text = appendText(appendText(text, string(take.keyTexts[i])), tableName)
		if tableName == "" {
			text = binary.LittleEndian.AppendUint64(text, math.Float64bits(policy.Rate().Tokens))
			text = binary.LittleEndian.AppendUint64(text, uint64(policy.Rate().Period))
			text = binary.LittleEndian.AppendUint64(text, policy.Limit())
		}
		text = take.answers[i].Receipt.Append(text)
	}
	return c.settings.Holds.Sealer.Seal(text, c.settings.Holds.Uses.Expires(lifetime)), true, true
}

// A holding is the part of an id that describes one key.
type holding struct {
	key     engine.Key
	receipt engine.Receipt
}

// open returns the holdings of an id. The parameter text is the content of an id that this program has sealed.
func (b *batch) open(text []byte) (holdings []holding, err error) {
	for len(text) > 0 {
		name, rest, ok := cutText(text)
		tableName, rest, ok2 := cutText(rest)
		if !ok || !ok2 {
			return nil, sealed.ErrForged // sealed by another version
		}
		table, quota := Table{b.limiter, b.formers}, engine.Quota{}
		if len(tableName) == 0 {
			quota, rest, err = b.cutQuota(rest)
		} else if table, ok = b.fileTables[string(tableName)]; !ok {
			err = fmt.Errorf("the limit '%s' is no longer in the rule file, or has become a token bucket", tableName)
		}
		if err == nil && len(rest) < engine.ReceiptBytes {
			err = sealed.ErrForged
		}
		if err != nil {
			return nil, err
		}
		h := holding{key: table.key(name, quota)}
		if h.receipt, err = table.Limiter.ParseReceipt(h.key, rest[:engine.ReceiptBytes]); err != nil {
			return nil, err
		}
		holdings, text = append(holdings, h), rest[engine.ReceiptBytes:]
	}
	return holdings, nil
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
	if n <= 0 || size > maxHoldKeys || uint64(len(from)-n) < size {
		return nil, nil, false
	}
	return from[n : n+int(size)], from[n+int(size):], true
}

var outcomes = map[sealed.Use]string{
	sealed.First: "settled", sealed.Late: "late", sealed.NoRoom: "late", sealed.Repeated: "repeated",
}

// settle answers WEIR.SETTLE id cost.
func settle(c *conn, b *batch, args [][]byte) {
	cost, ok := b.parseInRange("cost", args[2], 0, maxTokens)
	if !ok {
		return
	}
	opened, err := c.settings.Holds.Sealer.Open(string(args[1]))
	var holdings []holding
	if err == nil {
		holdings, err = b.open(opened.Receipt)
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
	for i := range holdings {
		switch r := &holdings[i].receipt; {
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
