package resp

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParser: no text makes the parser panic or read beyond the text. The parser does not wait for more of a command
// that is too long. The commands of a text do not depend on the pieces in which the text arrives.
func FuzzParser(f *testing.F) {
	for _, text := range []string{
		"*1\r\n$4\r\nPING\r\n", "PING a b\r\n", "*0\r\n*-1\r\n\r\n", "*2\r\n$0\r\n\r\n$1\r\na\r\n", "*1\r\n$-1\r\n", "*1\r\n*1\r\n",
		"*3\r\n$4\r\nAUTH\r\n$1\r\nx\r\n$3\r\nab", "$1\r\na\r\n", "*9223372036854775807\r\n", "*1\r\n$9223372036854775807\r\nx", "*\r\n", "\n\r", "ECHO \"a \\x41\" 'b\\''\n",
	} {
		f.Add([]byte(text), uint16(3), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, cut uint16, known bool) {
		most := bounds{256, 8}
		if known {
			most = boundsAfterAuth
		}
		commands, rest, err := parseAll(t, text, most)
		if err == nil {
			require.Less(t, len(rest), most.command, "it waits for more of what is too long")
		}
		first := text[:min(int(cut), len(text))]
		before, left, failed := parseAll(t, first, most)
		if failed != nil {
			return // the rest is not read
		}
		after, left, failed := parseAll(t, append(bytes.Clone(left), text[len(first):]...), most)
		require.Equal(t, commands, append(before, after...))
		require.Equal(t, err, failed)
		require.Equal(t, string(rest), string(left))
	})
}

// parseAll returns all commands of a text, each as one string, and the rest of the text.
func parseAll(t *testing.T, text []byte, most bounds) (commands []string, rest []byte, err error) {
	var p parser
	for len(text) > 0 {
		length, err := p.next(bytes.Clone(text), most) // a copy, because the parser writes quoted words into it
		if err != nil {
			return commands, text, err
		}
		if length == 0 {
			require.Empty(t, p.args)
			return commands, text, nil
		}
		require.LessOrEqual(t, length, most.command)
		require.LessOrEqual(t, len(p.args), most.arguments)
		all := ""
		for _, arg := range p.args {
			all += strconv.Quote(string(arg)) + " "
		}
		commands, text = append(commands, all), text[length:]
	}
	return commands, nil, nil
}

// FuzzConversation: whatever a client sends, each command gets one answer of the protocol. Each answer ends.
func FuzzConversation(f *testing.F) {
	for _, lines := range []string{
		"CL.THROTTLE a 15 30 60|PING|GCRA a 1 1 1.5|HELLO 3|WEIR.TAKE a LIMIT 1/s|CLIENT GETNAME|INFO|COMMAND|RESET|QUIT",
		"HELLO 3 AUTH default x SETNAME y|AUTH x|COMMAND DOCS ping|COMMAND INFO a|DEL a b|WEIR.CHARGE a LIMIT 1/s COST 99",
		"MULTI|WEIR.HOLD a LIMIT 9/s COST 3 FOR 5|WEIR.TAKEALL 2 a b LIMIT 1/s LIMIT 2/s|EXISTS a|TTL a|EXEC|WEIR.SETTLE x 1|WEIR.HOLDALL 1 a LIMIT 1/s FOR 2",
	} {
		f.Add([]byte(resp(strings.Split(lines, "|")...)), false)
		f.Add([]byte(strings.ReplaceAll(lines, "|", "\r\n")+"\r\n"), true)
	}
	limiter := newClock().limiter(f, longestOfTests)
	holds, err := NewHolds(1000, nil)
	require.NoError(f, err)
	f.Cleanup(func() { _ = holds.Uses.Close() })
	f.Fuzz(func(t *testing.T, text []byte, guarded bool) {
		settings := &Settings{Limiter: limiter, Longest: longestOfTests, Holds: holds}
		if guarded {
			settings.Passwords, _ = ParsePasswords("x")
		}
		r := &recorder{memory: memory{rest: text}}
		c := &conn{Conn: r, server: &Server{Settings: func() *Settings { return settings }, Counters: &Counters{}}}
		c.serve()
		answers, rest := 0, r.out
		for ; len(rest) > 0; answers++ {
			rest = skipReply(t, rest)
		}
		counts := c.server.Counters.Count()
		want := counts.Unknown + counts.Broken
		for _, n := range counts.Commands {
			want += n
		}
		require.EqualValues(t, want, answers)
		require.Less(t, len(r.out), 1<<12*(len(text)+1))
	})
}

type recorder struct {
	memory
	out []byte
}

func (r *recorder) Write(p []byte) (int, error) {
	r.out = append(r.out, p...)
	return len(p), nil
}

// skipReply returns the text after the answer at its beginning.
func skipReply(t *testing.T, text []byte) []byte {
	line, rest, ok := bytes.Cut(text, []byte("\r\n"))
	require.True(t, ok && len(line) > 0, "%q", text)
	require.NotContains(t, string(line), "\n")
	number := func() int {
		n, err := strconv.Atoi(string(line[1:]))
		require.NoError(t, err)
		return n
	}
	switch line[0] {
	case '+', '-':
		return rest
	case ':':
		number()
		return rest
	case ',':
		_, err := strconv.ParseFloat(string(line[1:]), 64)
		require.NoError(t, err)
		return rest
	case '_':
		require.Len(t, line, 1)
		return rest
	case '#':
		require.Contains(t, []string{"#t", "#f"}, string(line))
		return rest
	case '$', '=':
		n := number()
		if n == -1 {
			return rest
		}
		require.Equal(t, "\r\n", string(rest[n:n+2]))
		return rest[n+2:]
	case '*', '%':
		n := number()
		if line[0] == '%' {
			n *= 2
		}
		for range n {
			rest = skipReply(t, rest)
		}
		return rest
	}
	t.Fatalf("no answer begins with %q", line)
	return nil
}
