package resp

import (
	"fmt"
	"math"
	"strings"
)

type command struct {
	name             string // in lower case
	minArgs, maxArgs int    // number of arguments, including the name
	lastKey          int    // the arguments from 1 to this index are keys; 0: no argument is a key; -1: all are
	beforeAuth       bool   // permitted before the password, too
	batched          bool   // it takes tokens, and is decided together with others
	immediate        bool   // it is answered at once, even in a transaction
	run              func(*conn, *batch, [][]byte)
	syntax           string // its arguments
	summary          string
}

const (
	unbounded    = math.MaxInt
	commandCount = 33
)

// commands has all commands, and commandIndex has the index of each by its name. The function init sets both, because
// some commands read them.
var (
	commands     [commandCount]command
	commandIndex = map[string]int{}
	commandNames [][]byte
)

const maxCommandName = 16

func init() {
	commands = [commandCount]command{
		{name: "cl.throttle", minArgs: 3, maxArgs: 6, lastKey: 1, batched: true, run: throttle,
			syntax: "key max_burst count period [quantity] | key name [quantity]", summary: "Takes tokens, as redis-cell does"},
		{name: "rl.throttle", minArgs: 3, maxArgs: 6, lastKey: 1, batched: true, run: throttle,
			syntax: "key max_burst count period [quantity] | key name [quantity]", summary: "The same by another name"},
		{name: "gcra", minArgs: 5, maxArgs: 7, lastKey: 1, batched: true, run: gcra,
			syntax: "key max_burst tokens_per_period period [TOKENS n]", summary: "Takes tokens, and answers with fractions of seconds"},
		{name: "weir.take", minArgs: 4, maxArgs: 8, lastKey: 1, batched: true, run: weirTake,
			syntax: "key LIMIT rate [BURST n] [COST n]", summary: "Takes tokens, all or none"},
		{name: "weir.peek", minArgs: 4, maxArgs: 8, lastKey: 1, run: weirPeek,
			syntax: "key LIMIT rate [BURST n] [COST n]", summary: "Answers what is left, and takes nothing"},
		{name: "weir.refund", minArgs: 4, maxArgs: 8, lastKey: 1, run: weirRefund,
			syntax: "key LIMIT rate [BURST n] [COST n]", summary: "Gives tokens back"},
		{name: "weir.charge", minArgs: 4, maxArgs: 8, lastKey: 1, run: weirCharge,
			syntax: "key LIMIT rate [BURST n] [COST n]", summary: "Takes tokens whether they are available or not"},
		{name: "weir.takeall", minArgs: 5, maxArgs: unbounded, run: takeAll,
			syntax: "numkeys key [key ...] LIMIT rate [BURST n] [COST n] [LIMIT ...]", summary: "Takes tokens from several keys, all or none"},
		{name: "weir.hold", minArgs: 4, maxArgs: 10, lastKey: 1, run: hold,
			syntax: "key LIMIT rate [BURST n] [COST n] [FOR seconds]", summary: "Takes an estimate, and answers an id to settle it"},
		{name: "weir.holdall", minArgs: 5, maxArgs: unbounded, run: holdAll,
			syntax: "numkeys key [key ...] LIMIT rate [BURST n] [COST n] [LIMIT ...] [FOR seconds]", summary: "The " +
				"same for several keys, all or none"},
		{name: "weir.settle", minArgs: 3, maxArgs: 3, run: settle,
			syntax: "id cost", summary: "Replaces what was held by what it has cost"},
		{name: "weir.enter", minArgs: 4, maxArgs: 6, lastKey: 1, run: enter,
			syntax: "key LIMIT n [COST n]", summary: "Takes places in flight, and answers an id to release them"},
		{name: "weir.release", minArgs: 2, maxArgs: 2, run: release, syntax: "id", summary: "Releases places in flight"},
		{name: "weir.reset", minArgs: 2, maxArgs: unbounded, lastKey: -1, run: resetKeys,
			syntax: "key [key ...]", summary: "Makes keys as if they had taken nothing"},
		{name: "del", minArgs: 2, maxArgs: unbounded, lastKey: -1, run: resetKeys,
			syntax: "key [key ...]", summary: "The same as WEIR.RESET"},
		{name: "exists", minArgs: 2, maxArgs: unbounded, lastKey: -1, run: exists,
			syntax: "key [key ...]", summary: "Answers how many of the keys owe something"},
		{name: "ttl", minArgs: 2, maxArgs: 2, lastKey: 1, run: ttl, syntax: "key",
			summary: "Answers in how many seconds the key owes nothing, -2 if it owes nothing now"},
		{name: "pttl", minArgs: 2, maxArgs: 2, lastKey: 1, run: ttl, syntax: "key", summary: "The same in milliseconds"},
		{name: "multi", minArgs: 1, maxArgs: 1, immediate: true, run: multi, summary: "Begins a transaction: a batch of commands"},
		{name: "exec", minArgs: 1, maxArgs: 1, immediate: true, run: exec, summary: "Answers the commands of the transaction"},
		{name: "discard", minArgs: 1, maxArgs: 1, immediate: true, run: discard, summary: "Drops the commands of the transaction"},
		{name: "watch", minArgs: 2, maxArgs: unbounded, lastKey: -1, immediate: true, run: watch, syntax: "key [key ...]",
			summary: "Returns an error: no command needs it, and keys change with time"},
		{name: "unwatch", minArgs: 1, maxArgs: 1, run: unwatch, summary: "Watches no key, as always"},
		{name: "ping", minArgs: 1, maxArgs: 2, run: ping, syntax: "[message]", summary: "Answers PONG, or the message"},
		{name: "echo", minArgs: 2, maxArgs: 2, run: echo, syntax: "message", summary: "Answers the message"},
		{name: "hello", minArgs: 1, maxArgs: unbounded, beforeAuth: true, run: hello,
			syntax: "[protover [AUTH username password] [SETNAME clientname]]", summary: "Chooses RESP2 or RESP3"},
		{name: "auth", minArgs: 2, maxArgs: 3, beforeAuth: true, run: auth,
			syntax: "[username] password", summary: "Gives the password"},
		{name: "select", minArgs: 2, maxArgs: 2, run: selectDatabase, syntax: "index", summary: "Selects database 0, the only one"},
		{name: "client", minArgs: 2, maxArgs: unbounded, run: client,
			syntax: "subcommand [argument ...]", summary: "ID, GETNAME, SETNAME, SETINFO, TRACKING, NO-EVICT, NO-TOUCH"},
		{name: "info", minArgs: 1, maxArgs: unbounded, run: info, syntax: "[section ...]", summary: "Reports the state of the server"},
		{name: "reset", minArgs: 1, maxArgs: 1, beforeAuth: true, immediate: true, run: resetConnection, summary: "Resets the connection"},
		{name: "quit", minArgs: 1, maxArgs: unbounded, beforeAuth: true, immediate: true, run: quit, summary: "Ends the connection"},
		{name: "command", minArgs: 1, maxArgs: unbounded, run: describe, syntax: "[COUNT | DOCS [name ...] | INFO [name ...] | LIST]",
			summary: "Lists the commands"},
	}
	indexCommands()
}

func indexCommands() {
	for i := range commands {
		commandIndex[commands[i].name] = i
		commandNames = append(commandNames, []byte(commands[i].name))
	}
}

func lookup(name []byte) (int, bool) {
	var lower [maxCommandName]byte
	if len(name) > len(lower) {
		return 0, false
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	i, ok := commandIndex[string(lower[:len(name)])]
	return i, ok
}

// failUnknown answers an unknown command. If the command looks like HTTP, failUnknown also ends the connection.
// Otherwise a web page could make a browser on this machine send commands in the body of a request.
func (b *batch) failUnknown(c *conn, args [][]byte) {
	b.counts.unknownCommands++
	if isWord(args[0], "POST") || isWord(args[0], "Host:") {
		b.fail("ERR this is no HTTP server")
		c.closing = true
		return
	}
	if !c.authenticated {
		b.fail("NOAUTH Authentication required.")
		return
	}
	var text strings.Builder
	fmt.Fprintf(&text, "ERR unknown command '%s', with args beginning with: ", clip(args[0]))
	for _, arg := range args[1:] {
		if text.Len() > 2*maxClip {
			break
		}
		fmt.Fprintf(&text, "'%s' ", clip(arg))
	}
	b.fail(text.String())
}
