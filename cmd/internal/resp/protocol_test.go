package resp

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBrokenProtocol: broken input gets an error and ends the connection. Commands before the broken input are
// answered. Commands after it are not executed.
func TestBrokenProtocol(t *testing.T) {
	for _, c := range []struct{ name, sent, want string }{
		{"a count that is no number", "*x\r\n", `invalid multibulk length "x"`},
		{"too many arguments", "*1025\r\n", "invalid multibulk length 1025: want at most 1024"},
		{"a count beyond numbers", "*99999999999999999999\r\n", `invalid multibulk length "99999999999999999999"`},
		{"a count without end", "*" + strings.Repeat("1", 100), "too big multibulk length: a line of more than 32 bytes"},
		{"a line without CR", "*1\n$4\nPING\n", "invalid multibulk length: a line ends with CRLF"},
		{"no bulk string", "*1\r\n:1\r\n", "expected '$', got ':'"},
		{"an array in an array", "*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', got '*'"},
		{"a negative length", "*1\r\n$-1\r\n", "invalid bulk length -1: want 0 to 65536"},
		{"a huge length", "*1\r\n$536870912\r\n", "invalid bulk length 536870912: want 0 to 65536"},
		{"a length that overflows", "*1\r\n$9223372036854775807\r\n", "invalid bulk length 9223372036854775807: want 0 to 65536"},
		{"a length without end", "*1\r\n$" + strings.Repeat("1", 100), "too big bulk length: a line of more than 32 bytes"},
		{"a longer string than said", "*1\r\n$4\r\nPINGS\r\n", "expected CRLF after a bulk string of 4 bytes"},
		{"too long in all", "*3\r\n$4\r\nECHO\r\n$40000\r\n" + strings.Repeat("a", 40000) + "\r\n$40000\r\n", "a command of more than 65536 bytes"},
		{"as long as may be without an end", "*3\r\n$4\r\nECHO\r\n$65512\r\n" + strings.Repeat("a", 65512) + "\r\n$1\r\na\r\n",
			"a command of more than 65536 bytes"},
		{"a long line", strings.Repeat("a", 70000), "too big inline request: want at most 65536 bytes"},
		{"a quote without end", "ECHO \"a b\r\n", "unbalanced quotes in an inline command"},
		{"a quote without end that is escaped", "ECHO 'a b\\'\r\n", "unbalanced quotes in an inline command"},
		{"a quote inside a word", "ECHO \"a\"b\r\n", "no space behind a quote of an inline command"},
		{"a zero byte", "ECHO a\x00\r\n", "an inline command has no zero bytes: use a client"},
		{"words without end", strings.Repeat("a ", 1025) + "\n", "an inline command of more than 1024 words"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t)
			got := d.says("ECHO before\r\n" + c.sent + "\r\nCL.THROTTLE a 0 1 60\r\n")
			assert.Equal(t, "$6\r\nbefore\r\n-ERR Protocol error: "+c.want+"\r\n", got)
			n := d.counters.Count()
			assert.EqualValues(t, 1, n.Broken)
			assert.Zero(t, n.Allowed)
		})
	}
}

// TestHTTPEndsTheConnection: HTTP ends the connection, because a web page can make a browser on this machine send a
// POST with any body.
func TestHTTPEndsTheConnection(t *testing.T) {
	for _, first := range []string{"POST / HTTP/1.1\r\n", "post / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: localhost:6380\r\n"} {
		d := open(t)
		require.Equal(t, "*5 :0 :1 :0 :-1 :60", flat(d.says(resp("CL.THROTTLE a 0 1 60"))))
		assert.Contains(t, d.says(first+"\r\nDEL a\r\n"), "-ERR this is no HTTP server\r\n")
		assert.Equal(t, "*5 :1 :1 :0 :60 :60", flat(d.says(resp("CL.THROTTLE a 0 1 60"))), "the key was reset")
	}
}

// TestInlineCommands: a person can type commands as words in a line.
func TestInlineCommands(t *testing.T) {
	assert.Equal(t, "+PONG $1 a *5 :0 :1 :0 :-1 :60 +OK", flat(open(t).says("\r\n  \nPING\n\techo   a \r\ncl.throttle a 0 1 60\r\nQUIT now\r\nPING\r\n")))
}

// TestInlineQuotes: quotes in inline commands have the same meaning as in Redis.
func TestInlineQuotes(t *testing.T) {
	for sent, want := range map[string]string{
		`ECHO "a b"`: "a b", `ECHO 'a b'`: "a b", `ECHO ""`: "", `ECHO "a\n\r\t\b\a\"\\\q"`: "a\n\r\t\b\a\"\\q", `ECHO '\n\''`: `\n'`,
		`ECHO "\x41\x00\xff"`: "A\x00\xff", `ECHO "\xzz"`: "xzz", `ECHO "\x4"`: "x4", `ECHO a"b c"`: "ab c", `ECHO "é\\"`: `é\`,
		"ECHO '\"'": `"`, `"ECHO" "it's"`: "it's", `ECHO a\b`: `a\b`,
	} {
		assert.Equal(t, fmt.Sprintf("$%d\r\n%s\r\n+PONG\r\n", len(want), want), open(t).says(sent+"  \r\nPING\r\n"), sent)
	}
}

// TestCommandsThatAskForNothing: an empty array is skipped, as in Redis. A command with the empty name is an unknown
// command.
func TestCommandsThatAskForNothing(t *testing.T) {
	assert.Equal(t, "-ERR unknown command '', with args beginning with:  +PONG", flat(open(t).says("*0\r\n*-1\r\n*1\r\n$0\r\n\r\nPING\r\n")))
}

// TestNoErrorRepeatsControlCharacters: an error has no control characters of a client. They could end the error, and
// its rest would be read as a separate answer.
func TestNoErrorRepeatsControlCharacters(t *testing.T) {
	got := open(t).says("*2\r\n$10\r\nX\r\n+OK\r\nYZ\r\n$3\r\na\x00\xff\r\n")
	assert.Equal(t, "-ERR unknown command 'X??+OK??YZ', with args beginning with: 'a??' \r\n", got)
	long := open(t).says(resp(strings.Repeat("x", 1000) + " " + strings.Repeat("y", 1000)))
	assert.Less(t, len(long), 1000)
}

// TestKeysAreBytes: a key may be any bytes, including none and very many. Different bytes are different keys.
func TestKeysAreBytes(t *testing.T) {
	d := open(t)
	keys := []string{"", " ", "a", "A", "a\x00", "a\r\n", "\xff\xfe", "é", strings.Repeat("k", 60000), strings.Repeat("k", 60001)}
	for range 2 {
		for _, key := range keys {
			var r reply
			r.array(5)
			for _, arg := range []string{"CL.THROTTLE", key, "1", "1", "60"} {
				r.bulk(arg)
			}
			assert.Contains(t, d.says(string(r.out)), "*5\r\n:0\r\n:2\r\n")
		}
	}
	assert.EqualValues(t, 2*len(keys), d.counters.Count().Allowed)
}

// TestHowBytesArriveDoesNotMatter: commands that arrive in pieces of any size get the same answers as commands that
// arrive at once.
func TestHowBytesArriveDoesNotMatter(t *testing.T) {
	sent := "PING\r\n" + resp("HELLO 3", "CL.THROTTLE a 9 1 60", "GCRA a 9 1 60 TOKENS 2", "ECHO "+strings.Repeat("x", 5000), "WEIR.TAKE a LIMIT 1/m BURST 10",
		"DEL a", "CL.THROTTLE a 9 1 60 3", "FOO", "CL.THROTTLE b 9 1 60", "CL.THROTTLE a 9 1 60") + "ECHO\r\nQUIT\r\n"
	want := open(t).says(sent)
	require.Greater(t, len(want), 5500)
	for _, size := range []int{1, 2, 3, 7, 100, 4095, 4096, 4097} {
		d := open(t)
		c := d.dial()
		require.NoError(t, c.SetNoDelay(true))
		go func() {
			for rest := sent; rest != ""; {
				n, err := io.WriteString(c, rest[:min(size, len(rest))])
				if err != nil {
					return // the answers are checked below
				}
				rest = rest[n:]
			}
		}()
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		assert.Equal(t, want, string(got), fmt.Sprint(size))
	}
}
