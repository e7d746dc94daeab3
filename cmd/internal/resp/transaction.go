package resp

import "fmt"

// A transaction is the commands between MULTI and EXEC, which then are answered together, one after the other. Nil is
// no transaction.
type transaction struct {
	bytes   []byte // of all arguments
	lengths []int  // of the arguments, and before those of each command how many they are
	n       int    // commands
	aborted bool   // a command was wrong, so that none is run
}

// abort has EXEC run nothing.
func (t *transaction) abort() {
	if t != nil {
		t.aborted, t.bytes, t.lengths = true, nil, nil
	}
}

// add keeps a command for EXEC, and answers that it does.
func (t *transaction) add(b *batch, args [][]byte) {
	size := 0
	for _, arg := range args {
		size += len(arg)
	}
	switch {
	case t.aborted:
	case len(t.bytes)+size > queueBytes || t.n == queueCommands:
		t.abort()
		b.fail(fmt.Sprintf("ERR a transaction of more than %d bytes or %d commands: it is discarded", queueBytes, queueCommands))
		return
	default:
		t.lengths = append(t.lengths, len(args))
		for _, arg := range args {
			t.bytes, t.lengths = append(t.bytes, arg...), append(t.lengths, len(arg))
		}
		t.n++
	}
	b.decide()
	b.line('+', "QUEUED")
}

// next takes the first command out. Its arguments are parts of bytes.
func (t *transaction) next(args [][]byte) [][]byte {
	n := t.lengths[0]
	for _, length := range t.lengths[1 : n+1] {
		args = append(args, t.bytes[:length:length])
		t.bytes = t.bytes[length:]
	}
	t.lengths = t.lengths[n+1:]
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
	b.array(t.n)
	var args [][]byte
	for range t.n {
		args = t.next(args[:0])
		i, _ := lookup(args[0]) // it was there
		b.run(c, &commands[i], args)
		if len(b.out) >= flushAt && !b.flush(c) {
			c.closing = true // and the rest is not run
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

// watch is an error: what a key owes changes with time, so a transaction could not say that nothing has changed.
func watch(c *conn, b *batch, _ [][]byte) {
	if c.multi != nil {
		b.fail("ERR WATCH inside MULTI is not allowed")
		return
	}
	b.fail("ERR WATCH is not supported: a take decides and takes in one step")
}

func unwatch(_ *conn, b *batch, _ [][]byte) { b.ok() }
