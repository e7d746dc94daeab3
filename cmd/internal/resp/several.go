package resp

import (
	"fmt"
	"slices"

	"github.com/weir-go/weir/engine"
)

// maxKeys bounds the number of keys in a command. [engine.TakeAll] has the same bound.
const maxKeys = 64

// A multiTake is a command with several keys. It takes tokens from all of them or from none.
type multiTake struct {
	keyTexts [][]byte // texts of the keys
	limits   []limit
	requests []engine.Request
	answers  []engine.Answer
}

// parseMultiTake parses numkeys key [key ...] LIMIT rate [BURST n] [COST n] [LIMIT ...]. There is one limit for each
// key, or one for all keys. If the command is wrong, parseMultiTake answers with an error.
func (b *batch) parseMultiTake(args [][]byte, hold bool) (take multiTake, ok bool) {
	n, ok := b.parseInRange("numkeys", args[1], 1, maxKeys)
	if !ok {
		return take, false
	}
	if len(args) < 2+int(n) {
		b.fail(fmt.Sprintf("ERR %d keys: want as many as numkeys says, %d", len(args)-2, n))
		return take, false
	}
	take.keyTexts = slices.Clone(args[2 : 2+n])
	rest := args[2+n:]
	for len(rest) > 0 {
		end := 1 + slices.IndexFunc(rest[1:], func(arg []byte) bool { return isWord(arg, "LIMIT") })
		if end == 0 {
			end = len(rest)
		}
		l, ok := b.parseLimit(append([][]byte{args[0], nil}, rest[:end]...))
		if !ok {
			return take, false
		}
		take.limits, rest = append(take.limits, l), rest[end:]
	}
	if len(take.limits) != 1 && len(take.limits) != int(n) {
		b.fail(fmt.Sprintf("ERR %d limits for %d keys: want a LIMIT for each key, or one for all", len(take.limits), n))
		return take, false
	}
	for len(take.limits) < int(n) {
		take.limits = append(take.limits, take.limits[0])
	}
	return take, b.makeRequests(&take, hold)
}

// makeRequests makes the keys, and the requests for engine.TakeAll.
func (b *batch) makeRequests(take *multiTake, hold bool) bool {
	for i := range take.limits {
		l := &take.limits[i]
		t, key, ok := b.resolve(l, take.keyTexts[i])
		if !ok {
			return false
		}
		take.keyTexts[i] = l.key(take.keyTexts[i])
		take.requests = append(take.requests, engine.Request{Limiter: t.Limiter, Key: key, N: l.cost, Hold: hold})
	}
	take.answers = make([]engine.Answer, len(take.requests))
	return true
}

func (b *batch) takeMulti(take *multiTake) (allowed, ok bool) {
	allowed, err := engine.TakeAll(take.requests, take.answers)
	if err != nil {
		b.fail("ERR the same key twice: want each key once")
		return false, false
	}
	b.counts.decision(allowed)
	return allowed, true
}

func (b *batch) writeLimits(take *multiTake) {
	b.bulk("limits")
	b.array(len(take.answers))
	for i := range take.answers {
		b.decision(&take.answers[i].Decision)
	}
}

func takeAll(_ *conn, b *batch, args [][]byte) {
	take, ok := b.parseMultiTake(args, false)
	if !ok {
		return
	}
	if allowed, ok := b.takeMulti(&take); ok {
		b.pairs(2)
		b.bulk("allowed")
		b.boolean(allowed)
		b.writeLimits(&take)
	}
}
