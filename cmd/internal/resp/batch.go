package resp

import (
	"bytes"
	"sync"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/live"
)

// A batch answers the commands of one read. Only one connection at a time uses it.
type batch struct {
	reply
	limiter    *engine.Limiter
	formers    *live.Formers
	longest    time.Duration
	negative   bool
	fileLimits map[string]engine.Policy
	fileTables map[string]Table
	takes
	counts
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func (b *batch) begin(c *conn) {
	b.limiter, b.formers, b.longest, b.resp3 = c.settings.Limiter, c.settings.Formers, c.settings.Longest, c.resp3
	b.negative, b.fileLimits, b.fileTables = c.settings.Negative, c.settings.Limits, c.settings.Tables
}

// key returns the key for a text under a quota. The zero quota means the limit of the table. key charges the returned
// key with what it owes in previous limiters.
func (t Table) key(text []byte, quota engine.Quota) engine.Key {
	k := t.Limiter.KeyBytes(text).With(quota)
	if t.Formers.Any() {
		t.Formers.Move(t.Limiter, k, func(before *engine.Limiter) (engine.Key, bool) { return before.KeyBytes(text), true })
	}
	return k
}

// place returns the table of a limit, and the key for a text in that table. If the table does not accept the limit,
// place answers the command with an error.
func (b *batch) place(l *limit, text []byte) (t Table, key engine.Key, ok bool) {
	if l.name != "" {
		if own, has := b.fileTables[l.name]; has {
			return own, own.key(l.key(text), engine.Quota{}), true
		}
	}
	t = Table{b.limiter, b.formers}
	quota, err := b.limiter.Quota(l.policy)
	if err != nil {
		b.refuse(l.policy, err)
		return t, key, false
	}
	return t, t.key(l.key(text), quota), true
}

// ofTable returns the table of the limit that a key belongs to. The text of the key contains the limit's name. ok is
// false if the limit has no separate table.
func (b *batch) ofTable(text []byte) (t Table, ok bool) {
	name, _, isNamed := bytes.Cut(text, []byte{':'})
	if isNamed {
		t, ok = b.fileTables[string(name)]
	}
	return t, ok
}

// command answers a command, or adds it to the gathered takes.
func (b *batch) command(c *conn, args [][]byte) {
	i, ok := lookup(args[0])
	if !ok {
		c.multi.abort()
		b.unknown(c, args)
		return
	}
	known := &commands[i]
	b.counts.commands[i]++
	if !c.known && !known.early {
		b.fail("NOAUTH Authentication required.")
		return
	}
	if len(args) < known.atLeast || len(args) > known.atMost {
		c.multi.abort()
		b.fail("ERR wrong number of arguments for '" + known.name + "' command")
		return
	}
	if c.multi != nil && !known.direct {
		c.multi.add(b, args)
		return
	}
	b.run(c, known, args)
}

func (b *batch) run(c *conn, known *command, args [][]byte) {
	if !known.gathers {
		b.decide()
	}
	known.run(c, b, args)
}

func (b *batch) fail(text string) {
	b.decide() // earlier commands are answered first
	b.counts.errors++
	b.failure(text)
}

// broken answers a mistake in the protocol with an error, and makes the connection end.
func (b *batch) broken(c *conn, err error) {
	b.fail("ERR " + err.Error())
	b.counts.broken++
	c.closing = true
}

// flush decides the gathered takes and writes the answers. It returns false if the client does not read the answers.
func (b *batch) flush(c *conn) bool {
	b.decide()
	if len(b.out) == 0 {
		return true
	}
	defer func() { b.out = b.out[:0] }()
	if c.SetWriteDeadline(time.Now().Add(writeTimeout)) != nil {
		return false
	}
	_, err := c.Write(b.out)
	if err != nil {
		b.counts.slow++
	}
	return err == nil
}

func (b *batch) release(c *conn) {
	b.counts.addTo(c.server.Counters)
	b.limiter, b.formers, b.fileLimits, b.fileTables, b.out = nil, nil, nil, nil, b.out[:0]
	if cap(b.out) <= 2*flushAt {
		batches.Put(b)
	}
}
