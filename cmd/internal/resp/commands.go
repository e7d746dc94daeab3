package resp

import (
	"fmt"
	"math"
	"strings"
)

type command struct {
	name            string // in lower case
	atLeast, atMost int    // number of arguments, including the name
	lastKey         int    // the arguments from the first to this one are keys; 0: no argument is a key; -1: all are
	early           bool   // permitted before the password, too
	gathers         bool   // it takes tokens, and is decided together with others
	direct          bool   // it is answered at once, even in a transaction
	run             func(*conn, *batch, [][]byte)
	syntax          string // its arguments
	summary         string
}

const (
	unbounded    = math.MaxInt
	commandCount = 33
)

// commands has all commands, and byName has the index of each. The function init sets both, because some commands read
// them.
var (
	commands [commandCount]command
	byName   = map[string]int{}
	allNames [][]byte
)

const longestName = 16

func init() {
	commands = [commandCount]command{
		{name: "cl.throttle", atLeast: 3, atMost: 6, lastKey: 1, gathers: true, run: throttle,
			syntax: "key max_burst count period [quantity] | key name [quantity]", summary: "Takes tokens, as redis-cell does"},
		{name: "rl.throttle", atLeast: 3, atMost: 6, lastKey: 1, gathers: true, run: throttle,
			syntax: "key max_burst count period [quantity] | key name [quantity]", summary: "The same by another name"},
		{name: "gcra", atLeast: 5, atMost: 7, lastKey: 1, gathers: true, run: gcra,
			syntax: "key max_burst tokens_per_period period [TOKENS n]", summary: "Takes tokens, and answers with fractions of seconds"},
		{name: "weir.take", atLeast: 4, atMost: 8, lastKey: 1, gathers: true, run: weirTake,
			syntax: "key LIMIT rate [BURST n] [COST n]", summary: "Takes tokens, all or none"},
		{name: "weir.peek", atLeast: 4, atMost: 8, lastKey: 1, run: weirPeek,
			syntax: "key LIMIT rate [BURST n] [COST n]", summary: "Answers what is left, and takes nothing"},
		{name: "weir.refund", atLeast: 4, atMost: 8, lastKey: 1, run: weirRefund,
			syntax: "key LIMIT rate [BURST n] [COST n]", summary: "Gives tokens back"},
		{name: "weir.charge", atLeast: 4, atMost: 8, lastKey: 1, run: weirCharge,
			syntax: "key LIMIT rate [BURST n] [COST n]", summary: "Takes tokens whether they are available or not"},
		{name: "weir.takeall", atLeast: 5, atMost: unbounded, run: takeAll,
			syntax: "numkeys key [key ...] LIMIT rate [BURST n] [COST n] [LIMIT ...]", summary: "Takes tokens from several keys, all or none"},
		{name: "weir.hold", atLeast: 4, atMost: 10, lastKey: 1, run: hold,
			syntax: "key LIMIT rate [BURST n] [COST n] [FOR seconds]", summary: "Takes an estimate, and answers an id to settle it"},
		{name: "weir.holdall", atLeast: 5, atMost: unbounded, run: holdAll,
			syntax: "numkeys key [key ...] LIMIT rate [BURST n] [COST n] [LIMIT ...] [FOR seconds]", summary: "The " +
				"same for several keys, all or none"},
		{name: "weir.settle", atLeast: 3, atMost: 3, run: settle,
			syntax: "id cost", summary: "Replaces what was held by what it has cost"},
		{name: "weir.enter", atLeast: 4, atMost: 6, lastKey: 1, run: enter,
			syntax: "key LIMIT n [COST n]", summary: "Takes places in flight, and answers an id to release them"},
		{name: "weir.release", atLeast: 2, atMost: 2, run: release, syntax: "id", summary: "Releases places in flight"},
		{name: "weir.reset", atLeast: 2, atMost: unbounded, lastKey: -1, run: resetKeys,
			syntax: "key [key ...]", summary: "Makes keys as if they had taken nothing"},
		{name: "del", atLeast: 2, atMost: unbounded, lastKey: -1, run: resetKeys,
			syntax: "key [key ...]", summary: "The same as WEIR.RESET"},
		{name: "exists", atLeast: 2, atMost: unbounded, lastKey: -1, run: exists,
			syntax: "key [key ...]", summary: "Answers how many of the keys owe something"},
		{name: "ttl", atLeast: 2, atMost: 2, lastKey: 1, run: ttl, syntax: "key",
			summary: "Answers in how many seconds the key owes nothing, -2 if it owes nothing now"},
		{name: "pttl", atLeast: 2, atMost: 2, lastKey: 1, run: ttl, syntax: "key", summary: "The same in milliseconds"},
		{name: "multi", atLeast: 1, atMost: 1, direct: true, run: multi, summary: "Begins a transaction: a batch of commands"},
		{name: "exec", atLeast: 1, atMost: 1, direct: true, run: exec, summary: "Answers the commands of the transaction"},
		{name: "discard", atLeast: 1, atMost: 1, direct: true, run: discard, summary: "Drops the commands of the transaction"},
		{name: "watch", atLeast: 2, atMost: unbounded, lastKey: -1, direct: true, run: watch, syntax: "key [key ...]",
			summary: "Returns an error: no command needs it, and keys change with time"},
		{name: "unwatch", atLeast: 1, atMost: 1, run: unwatch, summary: "Watches no key, as always"},
		{name: "ping", atLeast: 1, atMost: 2, run: ping, syntax: "[message]", summary: "Answers PONG, or the message"},
		{name: "echo", atLeast: 2, atMost: 2, run: echo, syntax: "message", summary: "Answers the message"},
		{name: "hello", atLeast: 1, atMost: unbounded, early: true, run: hello,
			syntax: "[protover [AUTH username password] [SETNAME clientname]]", summary: "Chooses RESP2 or RESP3"},
		{name: "auth", atLeast: 2, atMost: 3, early: true, run: auth,
			syntax: "[username] password", summary: "Gives the password"},
		{name: "select", atLeast: 2, atMost: 2, run: choose, syntax: "index", summary: "Selects database 0, the only one"},
		{name: "client", atLeast: 2, atMost: unbounded, run: client,
			syntax: "subcommand [argument ...]", summary: "ID, GETNAME, SETNAME, SETINFO, TRACKING, NO-EVICT, NO-TOUCH"},
		{name: "info", atLeast: 1, atMost: unbounded, run: info, syntax: "[section ...]", summary: "Reports the state of the server"},
		{name: "reset", atLeast: 1, atMost: 1, early: true, direct: true, run: resetConnection, summary: "Resets the connection"},
		{name: "quit", atLeast: 1, atMost: unbounded, early: true, direct: true, run: quit, summary: "Ends the connection"},
		{name: "command", atLeast: 1, atMost: unbounded, run: describe, syntax: "[COUNT | DOCS [name ...] | INFO [name ...] | LIST]",
			summary: "Lists the commands"},
	}
	index()
}

func index() {
	for i := range commands {
		byName[commands[i].name] = i
		allNames = append(allNames, []byte(commands[i].name))
	}
}

func lookup(name []byte) (int, bool) {
	var room [longestName]byte
	if len(name) > len(room) {
		return 0, false
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		room[i] = c
	}
	i, ok := byName[string(room[:len(name)])]
	return i, ok
}

// unknown answers an unknown command. If the command looks like HTTP, unknown also ends the connection. Otherwise a web
// page could make a browser on this machine send commands in the body of a request.
func (b *batch) unknown(c *conn, args [][]byte) {
	b.counts.unknown++
	if isWord(args[0], "POST") || isWord(args[0], "Host:") {
		b.fail("ERR this is no HTTP server")
		c.closing = true
		return
	}
	if !c.known {
		b.fail("NOAUTH Authentication required.")
		return
	}
	var text strings.Builder
	fmt.Fprintf(&text, "ERR unknown command '%s', with args beginning with: ", clip(args[0]))
	for _, arg := range args[1:] {
		if text.Len() > 2*shown {
			break
		}
		fmt.Fprintf(&text, "'%s' ", clip(arg))
	}
	b.fail(text.String())
}
