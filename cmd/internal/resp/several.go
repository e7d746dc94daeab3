package resp

import (
	"fmt"
	"slices"

	"github.com/weir-go/weir/engine"
)

// maxKeys bounds the number of keys in a command. [engine.TakeAll] has the same bound.
const maxKeys = 64

// A several is a command with several keys, which takes tokens from all of them or from none.
type several struct {
	texts    [][]byte // texts of the keys
	limits   []limit
	requests []engine.Request
	answers  []engine.Answer
}

// severally parses numkeys key [key ...] LIMIT rate [BURST n] [COST n] [LIMIT ...]. There is one limit for each key, or
// one for all keys. If the command is wrong, severally answers with an error.
func (b *batch) severally(args [][]byte, hold bool) (s several, ok bool) {
	n, ok := b.ranged("numkeys", args[1], 1, maxKeys)
	if !ok {
		return s, false
	}
	if len(args) < 2+int(n) {
		b.fail(fmt.Sprintf("ERR %d keys: want as many as numkeys says, %d", len(args)-2, n))
		return s, false
	}
	s.texts = slices.Clone(args[2 : 2+n])
	rest := args[2+n:]
	for len(rest) > 0 {
		end := 1 + slices.IndexFunc(rest[1:], func(arg []byte) bool { return isWord(arg, "LIMIT") })
		if end == 0 {
			end = len(rest)
		}
		l, ok := b.limit(append([][]byte{args[0], nil}, rest[:end]...))
		if !ok {
			return s, false
		}
		s.limits, rest = append(s.limits, l), rest[end:]
	}
	if len(s.limits) != 1 && len(s.limits) != int(n) {
		b.fail(fmt.Sprintf("ERR %d limits for %d keys: want a LIMIT for each key, or one for all", len(s.limits), n))
		return s, false
	}
	for len(s.limits) < int(n) {
		s.limits = append(s.limits, s.limits[0])
	}
	return s, b.ask(&s, hold)
}

// ask makes the keys, and the requests for engine.TakeAll.
func (b *batch) ask(s *several, hold bool) bool {
	for i := range s.limits {
		l := &s.limits[i]
		t, key, ok := b.place(l, s.texts[i])
		if !ok {
			return false
		}
		s.texts[i] = l.key(s.texts[i])
		s.requests = append(s.requests, engine.Request{Limiter: t.Limiter, Key: key, N: l.cost, Hold: hold})
	}
	s.answers = make([]engine.Answer, len(s.requests))
	return true
}

func (b *batch) takeSeveral(s *several) (allowed, ok bool) {
	allowed, err := engine.TakeAll(s.requests, s.answers)
	if err != nil {
		b.fail("ERR the same key twice: want each key once")
		return false, false
	}
	b.counts.decision(allowed)
	return allowed, true
}

func (b *batch) tell(s *several) {
	b.bulk("limits")
	b.array(len(s.answers))
	for i := range s.answers {
		b.decision(&s.answers[i].Decision)
	}
}

func takeAll(_ *conn, b *batch, args [][]byte) {
	s, ok := b.severally(args, false)
	if !ok {
		return
	}
	if allowed, ok := b.takeSeveral(&s); ok {
		b.pairs(2)
		b.bulk("allowed")
		b.boolean(allowed)
		b.tell(&s)
	}
}
