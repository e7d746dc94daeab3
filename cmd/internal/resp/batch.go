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
	limiter       *engine.Limiter
	formers       *live.Formers
	longest       time.Duration
	allowNegative bool
	fileLimits    map[string]engine.Policy
	fileTables    map[string]Table
	takes
	counts
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func (b *batch) begin(c *conn) {
	b.limiter, b.formers, b.longest, b.resp3 = c.settings.Limiter, c.settings.Formers, c.settings.Longest, c.resp3
	b.allowNegative, b.fileLimits, b.fileTables = c.settings.Negative, c.settings.Limits, c.settings.Tables
}

// key returns the key for a text under a quota. The zero quota means the limit of the table. key charges this key with
// the tokens that it owes in previous limiters.
func (t Table) key(text []byte, quota engine.Quota) engine.Key {
	k := t.Limiter.KeyBytes(text).With(quota)
	if t.Formers.Any() {
		t.Formers.Move(t.Limiter, k, func(previous *engine.Limiter) (engine.Key, bool) { return previous.KeyBytes(text), true })
	}
	return k
}

// resolve returns the table of a limit, and the key for a text in that table. If the table does not accept the limit,
// resolve answers the command with an error.
func (b *batch) resolve(l *limit, text []byte) (t Table, key engine.Key, ok bool) {
	if l.name != "" {
		if table, found := b.fileTables[l.name]; found {
			return table, table.key(l.key(text), engine.Quota{}), true
		}
	}
	t = Table{b.limiter, b.formers}
	quota, err := b.limiter.Quota(l.policy)
	if err != nil {
		b.failPolicy(l.policy, err)
		return t, key, false
	}
	return t, t.key(l.key(text), quota), true
}

// tableOf returns the table of the limit that a key belongs to. The text of the key contains the limit's name. ok is
// false if the limit has no separate table.
func (b *batch) tableOf(text []byte) (t Table, ok bool) {
	name, _, isNamed := bytes.Cut(text, []byte{':'})
	if isNamed {
		t, ok = b.fileTables[string(name)]
	}
	return t, ok
}

// dispatch answers a command, or adds it to the takes that will be decided together.
func (b *batch) dispatch(c *conn, args [][]byte) {
	i, ok := lookup(args[0])
	if !ok {
		c.multi.abort()
		b.failUnknown(c, args)
		return
	}
	cmd := &commands[i]
	b.counts.commands[i]++
	if !c.authenticated && !cmd.beforeAuth {
		b.fail("NOAUTH Authentication required.")
		return
	}
	if len(args) < cmd.minArgs || len(args) > cmd.maxArgs {
		c.multi.abort()
		b.fail("ERR wrong number of arguments for '" + cmd.name + "' command")
		return
	}
	if c.multi != nil && !cmd.immediate {
		c.multi.add(b, args)
		return
	}
	b.run(c, cmd, args)
}

func (b *batch) run(c *conn, cmd *command, args [][]byte) {
	if !cmd.batched {
		b.decide()
	}
	cmd.run(c, b, args)
}

func (b *batch) fail(text string) {
	b.decide() // earlier commands are answered first
	b.counts.errors++
	b.errorLine(text)
}

// failProtocol answers a mistake in the protocol with an error, and makes the connection end.
func (b *batch) failProtocol(c *conn, err error) {
	b.fail("ERR " + err.Error())
	b.counts.protocolErrors++
	c.closing = true
}

// flush decides the added takes and writes the answers. It returns false if the client does not read the answers.
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
		b.counts.slowClients++
	}
	return err == nil
}

func (b *batch) release(c *conn) {
	b.counts.addTo(c.server.Counters)
	b.limiter, b.formers, b.fileLimits, b.fileTables, b.out = nil, nil, nil, nil, b.out[:0]
	if cap(b.out) <= 2*flushBytes {
		batches.Put(b)
	}
}
