package resp

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// A transaction has the commands between MULTI and EXEC. EXEC executes them one after the other. nil means that there
// is no transaction.
type transaction struct {
	queue   []byte // for each command: the number of arguments, and each argument after its length
	count   int    // number of commands
	aborted bool   // a command was wrong, so EXEC executes none
}

// abort makes EXEC execute nothing.
func (t *transaction) abort() {
	if t != nil {
		t.aborted, t.queue = true, nil
	}
}

// add queues a command for EXEC, and answers QUEUED.
func (t *transaction) add(b *batch, args [][]byte) {
	size := lengthBytes(len(args))
	for _, arg := range args {
		size += lengthBytes(len(arg)) + len(arg)
	}
	switch {
	case t.aborted:
	case len(t.queue)+size > queueBytes || t.count == queueCommands:
		t.abort()
		b.fail(fmt.Sprintf("ERR a transaction of more than %d bytes or %d commands: it is discarded", queueBytes, queueCommands))
		return
	default:
		t.queue = binary.AppendUvarint(t.queue, uint64(len(args)))
		for _, arg := range args {
			t.queue = append(binary.AppendUvarint(t.queue, uint64(len(arg))), arg...)
		}
		t.count++
	}
	b.decide()
	b.line('+', "QUEUED")
}

// lengthBytes returns how many bytes the number n takes in the queue.
func lengthBytes(n int) int { return (bits.Len(uint(n)|1) + 6) / 7 }

// cutLength cuts a number off the beginning of the queue.
func (t *transaction) cutLength() int {
	n, size := binary.Uvarint(t.queue) // written by add, so it is valid
	t.queue = t.queue[size:]
	return int(n)
}

// next cuts off the first command of the queue. The arguments that it returns are parts of the queue.
func (t *transaction) next(args [][]byte) [][]byte {
	for range t.cutLength() {
		n := t.cutLength()
		args = append(args, t.queue[:n:n])
		t.queue = t.queue[n:]
	}
	return args
}

func multi(c *conn, b *batch, _ [][]byte) {
	if c.multi != nil {
		b.fail("ERR MULTI calls can not be nested")
		return
	}
	c.multi = &transaction{}
	b.ok()
}

func exec(c *conn, b *batch, _ [][]byte) {
	t := c.multi
	c.multi = nil
	switch {
	case t == nil:
		b.fail("ERR EXEC without MULTI")
		return
	case t.aborted:
		b.fail("EXECABORT Transaction discarded because of previous errors.")
		return
	}
	b.array(t.count)
	var args [][]byte
	for range t.count {
		args = t.next(args[:0])
		i, _ := lookup(args[0]) // it was found when the command was queued
		b.run(c, &commands[i], args)
		if len(b.out) >= flushBytes && !b.flush(c) {
			c.closing = true // the remaining commands are not executed
			return
		}
	}
}

func discard(c *conn, b *batch, _ [][]byte) {
	if c.multi == nil {
		b.fail("ERR DISCARD without MULTI")
		return
	}
	c.multi = nil
	b.ok()
}

// watch answers with an error. The debt of a key changes with time, so a transaction could never report that a key is
// unchanged.
func watch(c *conn, b *batch, _ [][]byte) {
	if c.multi != nil {
		b.fail("ERR WATCH inside MULTI is not allowed")
		return
	}
	b.fail("ERR WATCH is not supported: a take checks and takes in one step")
}

func unwatch(_ *conn, b *batch, _ [][]byte) { b.ok() }
