package resp

import "sync/atomic"

// Counters has the counters of the servers of Redis' protocol. The zero Counters is ready to use. It must not be
// copied.
type Counters struct {
	commands                                [commandCount]atomic.Uint64
	allowed, limited                        atomic.Uint64
	errors, unknownCommands, protocolErrors atomic.Uint64
	wrongPasswords, slowClients             atomic.Uint64
}

// Count is a snapshot of [Counters].
type Count struct {
	Commands         map[string]uint64 // by name in lower case; failed commands count, too
	Allowed, Limited uint64            // decisions
	Errors           uint64            // commands that were answered with an error, including those in Unknown
	Unknown          uint64            // commands that do not exist
	Broken           uint64            // connections that ended because of a mistake in the protocol
	WrongPasswords   uint64
	Slow             uint64 // connections that ended because the client did not read its answers
}

// Count returns the current numbers.
func (c *Counters) Count() Count {
	n := Count{
		Commands: make(map[string]uint64, len(commands)), Allowed: c.allowed.Load(), Limited: c.limited.Load(),
		Errors: c.errors.Load(), Unknown: c.unknownCommands.Load(), Broken: c.protocolErrors.Load(),
		WrongPasswords: c.wrongPasswords.Load(), Slow: c.slowClients.Load(),
	}
	for i := range commands {
		n.Commands[commands[i].name] = c.commands[i].Load()
	}
	return n
}

// counts has the counts of one batch. They are added to the Counters together, so that goroutines of several
// connections seldom write to the same words of memory.
type counts struct {
	commands                                                             [commandCount]uint32
	allowed, limited                                                     uint64
	errors, unknownCommands, protocolErrors, wrongPasswords, slowClients uint64
}

func (n *counts) decision(allowed bool) {
	if allowed {
		n.allowed++
	} else {
		n.limited++
	}
}

// addTo adds the counts to c, and resets them to 0.
func (n *counts) addTo(c *Counters) {
	add := func(to *atomic.Uint64, n uint64) {
		if n > 0 {
			to.Add(n)
		}
	}
	for i, count := range n.commands {
		add(&c.commands[i], uint64(count))
	}
	add(&c.allowed, n.allowed)
	add(&c.limited, n.limited)
	add(&c.errors, n.errors)
	add(&c.unknownCommands, n.unknownCommands)
	add(&c.protocolErrors, n.protocolErrors)
	add(&c.wrongPasswords, n.wrongPasswords)
	add(&c.slowClients, n.slowClients)
	*n = counts{}
}
