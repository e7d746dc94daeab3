package resp

import (
	"fmt"
	"runtime"
	"strings"
)

// Some of these commands are about the connection. Clients send the others when they connect.

func ping(_ *conn, b *batch, args [][]byte) {
	if len(args) == 2 {
		b.bulkBytes(args[1])
	} else {
		b.line('+', "PONG")
	}
}

func echo(_ *conn, b *batch, args [][]byte) { b.bulkBytes(args[1]) }

func quit(c *conn, b *batch, _ [][]byte) {
	b.ok()
	c.closing = true
}

func selectDatabase(_ *conn, b *batch, args [][]byte) {
	if n, ok := parseInteger(args[1]); !ok || n != 0 {
		b.fail(fmt.Sprintf("ERR DB index is out of range: '%s': want 0", clip(args[1])))
		return
	}
	b.ok()
}

// hello answers HELLO [version [AUTH user password] [SETNAME name]]. If a part of the command is wrong, nothing
// changes.
func hello(c *conn, b *batch, args [][]byte) {
	resp3, authenticated, name := c.resp3, c.authenticated, c.name
	if len(args) > 1 {
		version, ok := parseInteger(args[1])
		if !ok || version != 2 && version != 3 {
			b.fail(fmt.Sprintf("NOPROTO unsupported protocol version '%s': want 2 or 3", clip(args[1])))
			return
		}
		resp3 = version == 3
	}
	for i := 2; i < len(args); {
		switch {
		case isWord(args[i], "AUTH") && i+2 < len(args):
			if !b.checkPassword(c, args[i+1], args[i+2]) {
				return
			}
			authenticated = true
			i += 3
		case isWord(args[i], "SETNAME") && i+1 < len(args):
			var ok bool
			if name, ok = b.parseName(args[i+1]); !ok {
				return
			}
			i += 2
		default:
			b.fail(fmt.Sprintf("ERR syntax error in HELLO option '%s': want AUTH username password or SETNAME name", clip(args[i])))
			return
		}
	}
	if !authenticated {
		b.fail("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH " +
			"<user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	c.authenticated, c.name, c.resp3, b.resp3 = true, name, resp3, resp3
	protocol := int64(2)
	if resp3 {
		protocol = 3
	}
	b.pairs(7)
	b.bulk("server")
	b.bulk("weir")
	b.bulk("version")
	b.bulk(strings.TrimPrefix(c.server.Version, "v"))
	b.bulk("proto")
	b.integer(protocol)
	b.bulk("id")
	b.integer(c.id)
	b.bulk("mode")
	b.bulk("standalone")
	b.bulk("role")
	b.bulk("master")
	b.bulk("modules")
	b.array(0)
}

const defaultUser = "default"

func auth(c *conn, b *batch, args [][]byte) {
	if len(c.settings.Passwords) == 0 && len(args) == 2 {
		b.fail("ERR AUTH <password> called without any password configured for the default user. Are you sure your " +
			"configuration is correct?")
		return
	}
	user := []byte(defaultUser)
	if len(args) == 3 {
		user = args[1]
	}
	if b.checkPassword(c, user, args[len(args)-1]) {
		c.authenticated = true
		b.ok()
	}
}

// checkPassword reports whether a password is valid. If it is not, checkPassword answers with an error. Without
// configured passwords, every password is valid. Many wrong passwords end the connection. Otherwise a pipeline could
// try a million per second.
func (b *batch) checkPassword(c *conn, user, password []byte) bool {
	if string(user) == defaultUser && (len(c.settings.Passwords) == 0 || c.settings.Passwords.match(password)) {
		return true
	}
	b.counts.wrongPasswords++
	c.wrongPasswords++
	c.closing = c.closing || c.wrongPasswords >= maxWrongPasswords
	b.fail("WRONGPASS invalid username-password pair or user is disabled.")
	return false
}

func (b *batch) parseName(text []byte) (string, bool) {
	for _, c := range text {
		if c < '!' || c > '~' || len(text) > maxClientName {
			b.fail(fmt.Sprintf("ERR Client names cannot contain spaces, newlines or special characters: '%s': want at most %d "+
				"printable characters", clip(text), maxClientName))
			return "", false
		}
	}
	return string(text), true
}

// client answers CLIENT. Unknown subcommands are errors.
func client(c *conn, b *batch, args [][]byte) {
	matches := func(word string, arguments int) bool { return isWord(args[1], word) && len(args) == 2+arguments }
	switch {
	case matches("ID", 0):
		b.integer(c.id)
	case matches("GETNAME", 0) && c.name == "":
		b.null()
	case matches("GETNAME", 0):
		b.bulk(c.name)
	case matches("SETNAME", 1):
		if name, ok := b.parseName(args[2]); ok {
			c.name = name
			b.ok()
		}
	case matches("SETINFO", 2) && (isWord(args[2], "LIB-NAME") || isWord(args[2], "LIB-VER")):
		if _, ok := b.parseName(args[3]); ok { // the name is not shown anywhere, so it is only checked
			b.ok()
		}
	case isWord(args[1], "TRACKING") && len(args) > 2, matches("NO-EVICT", 1), matches("NO-TOUCH", 1):
		b.ok() // nothing must be done: no command reads values that could be tracked, and no connection is evicted
	default:
		b.fail(fmt.Sprintf("ERR unknown subcommand or wrong number of arguments for '%s': want CLIENT ID, GETNAME, SETNAME, "+
			"SETINFO, TRACKING, NO-EVICT or NO-TOUCH", clip(args[1])))
	}
}

func resetConnection(c *conn, b *batch, _ [][]byte) {
	c.name, c.resp3, b.resp3, c.multi = "", false, false, nil
	c.authenticated = len(c.settings.Passwords) == 0
	b.line('+', "RESET")
}

// info answers INFO. It always sends all sections, even if the client asks for only some.
func info(c *conn, b *batch, _ [][]byte) {
	stats, n := c.settings.Stats(), c.server.Counters.Count()
	var text strings.Builder
	section := func(name string, pairs ...property) {
		fmt.Fprintf(&text, "# %s\r\n", name)
		for _, p := range pairs {
			fmt.Fprintf(&text, "%s:%v\r\n", p.name, p.value)
		}
		text.WriteString("\r\n")
	}
	section("Server", property{"server_name", "weir"}, property{"weir_version", strings.TrimPrefix(c.server.Version, "v")},
		property{"redis_mode", "standalone"}, property{"go_version", runtime.Version()})
	section("Clients", property{"connected_clients", c.server.Open()})
	section("Limits", property{"decisions_allowed", n.Allowed}, property{"decisions_limited", n.Limited},
		property{"keys", stats.Keys}, property{"table_slots", stats.Slots}, property{"table_bytes", stats.Bytes},
		property{"evictions", stats.Evictions})
	section("Replication", property{"role", "master"}, property{"connected_slaves", 0})
	b.text(text.String())
}

type property struct {
	name  string
	value any
}

// describe answers COMMAND and its subcommands.
func describe(_ *conn, b *batch, args [][]byte) {
	sub := ""
	if len(args) > 1 {
		sub = strings.ToUpper(clip(args[1]))
	}
	switch {
	case sub == "":
		b.array(len(commands))
		for i := range commands {
			b.commandInfo(&commands[i])
		}
	case sub == "COUNT" && len(args) == 2:
		b.integer(int64(len(commands)))
	case sub == "LIST" && len(args) == 2:
		b.array(len(commands))
		for i := range commands {
			b.bulk(commands[i].name)
		}
	case sub == "INFO":
		names := args[2:]
		if len(names) == 0 {
			names = commandNames
		}
		b.array(len(names))
		for _, name := range names {
			if i, ok := lookup(name); ok {
				b.commandInfo(&commands[i])
			} else {
				b.null()
			}
		}
	case sub == "DOCS":
		b.commandDocs(args[2:])
	default:
		b.fail(fmt.Sprintf("ERR unknown subcommand or wrong number of arguments for '%s': want COMMAND COUNT, DOCS, INFO or LIST",
			clip(args[1])))
	}
}

// commandInfo writes the description of a command for cluster clients: its name, the number of its arguments, and which
// arguments are keys.
func (b *batch) commandInfo(c *command) {
	arity, first, last, step := int64(c.minArgs), int64(0), int64(c.lastKey), int64(0)
	if c.maxArgs != c.minArgs {
		arity = -arity
	}
	if c.lastKey != 0 {
		first, step = 1, 1
	}
	b.array(6)
	b.bulk(c.name)
	b.integer(arity)
	b.array(1)
	b.line('+', "fast")
	b.integer(first)
	b.integer(last)
	b.integer(step)
}

// commandDocs answers COMMAND DOCS for the commands with the given names, or for all commands.
func (b *batch) commandDocs(names [][]byte) {
	if len(names) == 0 {
		names = commandNames
	}
	indices := make([]int, 0, len(commands))
	var seen [commandCount]bool
	for _, name := range names {
		if i, ok := lookup(name); ok && !seen[i] {
			seen[i] = true
			indices = append(indices, i)
		}
	}
	b.pairs(len(indices))
	for _, i := range indices {
		c := &commands[i]
		b.bulk(c.name)
		b.pairs(3)
		b.bulk("summary")
		b.bulk(c.summary)
		b.bulk("group")
		b.bulk("rate_limit")
		b.bulk("syntax")
		b.bulk(strings.TrimSpace(strings.ToUpper(c.name) + " " + c.syntax))
	}
}
