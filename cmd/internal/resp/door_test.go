package resp

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanos.Store(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time { return time.Unix(0, c.nanos.Load()) }

func (c *clock) limiter(t testing.TB, longest time.Duration) *engine.Limiter {
	t.Helper()
	l, err := engine.New(engine.TokenBuckets(longest), engine.MaxKeys(10_000), engine.ClockFunc(c.now))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// A door is the server under test on a loopback port.
type door struct {
	*Server
	t        *testing.T
	clock    *clock
	settings atomic.Pointer[Settings]
	counters *Counters
	address  string
	wrap     func(net.Conn) net.Conn // wraps the connections of the server
}

const longestOfTests = 26 * 24 * time.Hour

func open(t *testing.T, passwords ...string) *door {
	t.Helper()
	return openWith(t, func(c net.Conn) net.Conn { return c }, passwords...)
}

func openWith(t *testing.T, wrap func(net.Conn) net.Conn, passwords ...string) *door {
	t.Helper()
	d := &door{t: t, clock: newClock(), counters: &Counters{}, wrap: wrap}
	all, err := ParsePasswords(strings.Join(passwords, "\n"))
	if len(passwords) > 0 {
		require.NoError(t, err)
	}
	holds, err := NewHolds(1000, d.clock.now, engine.ClockFunc(d.clock.now))
	require.NoError(t, err)
	places, err := NewPlaces(time.Minute, 1000, engine.Evict, d.clock.now, engine.ClockFunc(d.clock.now))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, errors.Join(holds.Uses.Close(), places.Close())) })
	d.settings.Store(&Settings{Limiter: d.clock.limiter(t, longestOfTests), Longest: longestOfTests, Passwords: all, Holds: holds, Places: places})
	d.Server = &Server{Settings: d.settings.Load, Counters: d.counters, Version: "v1.2.3"}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d.address = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- d.Serve(wrapping{l, d}) }()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-served
		require.NoError(t, d.Shutdown(context.Background()))
	})
	return d
}

type wrapping struct {
	net.Listener
	door *door
}

func (w wrapping) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return w.door.wrap(c), nil
}

func (d *door) dial() *net.TCPConn {
	d.t.Helper()
	c, err := net.Dial("tcp", d.address)
	require.NoError(d.t, err)
	d.t.Cleanup(func() { _ = c.Close() })
	require.NoError(d.t, c.SetDeadline(time.Now().Add(time.Minute))) // so that no test waits forever
	return c.(*net.TCPConn)
}

// says sends text over a new connection, and returns all answers until the server closes it.
func (d *door) says(text string) string {
	d.t.Helper()
	c := d.dial()
	go func() {
		_, _ = io.WriteString(c, text) // fails if the server ends the connection before; the answers show that
		_ = c.CloseWrite()
	}()
	answer, err := io.ReadAll(c)
	require.NoError(d.t, err)
	return string(answer)
}

// resp returns the bytes with which clients send commands. Each line has the words of one command.
func resp(lines ...string) string {
	var r reply
	for _, line := range lines {
		words := strings.Fields(line)
		r.array(len(words))
		for _, w := range words {
			r.bulk(strings.ReplaceAll(w, "~", " "))
		}
	}
	return string(r.out)
}

func flat(answer string) string { return strings.TrimSpace(strings.ReplaceAll(answer, "\r\n", " ")) }

func TestAnswers(t *testing.T) {
	for _, c := range []struct{ name, sent, want string }{
		{"allowed", "CL.THROTTLE user123 15 30 60", "*5 :0 :16 :15 :-1 :2"},
		{"lower case", "cl.throttle a 15 30 60 1", "*5 :0 :16 :15 :-1 :2"},
		{"the other name", "RL.THROTTLE a 15 30 60 3", "*5 :0 :16 :13 :-1 :6"},
		{"a look", "CL.THROTTLE a 15 30 60 0", "*5 :0 :16 :16 :-1 :0"},
		{"more than the limit", "CL.THROTTLE a 15 30 60 17", "*5 :1 :16 :16 :-1 :0"},
		{"no burst", "CL.THROTTLE a 0 1 10", "*5 :0 :1 :0 :-1 :10"},
		{"gcra", "GCRA a 5 10 60", "*5 :0 :6 :5 $2 -1 $1 6"},
		{"gcra tokens", "GCRA a 5 10 60.0 TOKENS 3", "*5 :0 :6 :3 $2 -1 $2 18"},
		{"gcra as it was", "gcra a 5 10 1.5 num_requests 2", "*5 :0 :6 :4 $2 -1 $3 0.3"},
		{"take", "WEIR.TAKE a LIMIT 3/m", "*10 $7 allowed :1 $5 limit :3 $9 remaining :2 $11 retry_after $1 0 $11 reset_after $2 20"},
		{"take never", "WEIR.TAKE a LIMIT 3/m COST 4",
			"*10 $7 allowed :0 $5 limit :3 $9 remaining :3 $11 retry_after $2 -1 $11 reset_after $1 0"},
		{"peek", "WEIR.PEEK a burst 7 limit 1/s cost 7",
			"*10 $7 allowed :1 $5 limit :7 $9 remaining :7 $11 retry_after $1 0 $11 reset_after $1 0"},
		{"charge", "WEIR.CHARGE a LIMIT 10/s COST 1000", "*12 $7 allowed :0 $5 limit :10 $9 remaining :0 " +
			"$11 retry_after $3 9.1 $11 reset_after $2 10 $4 lost :900"},
		{"reset", "WEIR.RESET a b", ":0"},
		{"ping", "PING", "+PONG"},
		{"ping with", "PING a~b", "$3 a b"},
		{"echo", "ECHO x", "$1 x"},
		{"select", "SELECT 0", "+OK"},
		{"select another", "SELECT 1", "-ERR DB index is out of range: '1': want 0"},
		{"no name", "CLIENT GETNAME", "$-1"},
		{"client", "CLIENT SETINFO LIB-NAME redis-py", "+OK"},
		{"client else", "CLIENT KILL x", "-ERR unknown subcommand or wrong number of arguments for 'KILL': want CLIENT ID, GETNAME, " +
			"SETNAME, SETINFO, TRACKING, NO-EVICT or NO-TOUCH"},
		{"a name with a space", "CLIENT SETNAME a~b", "-ERR Client names cannot contain spaces, newlines or special characters: " +
			"'a b': want at most 128 printable characters"},
		{"hello", "HELLO", "*14 $6 server $4 weir $7 version $5 1.2.3 $5 proto :2 $2 id :1 $4 mode $10 standalone $4 role $6 master " +
			"$7 modules *0"},
		{"hello 4", "HELLO 4", "-NOPROTO unsupported protocol version '4': want 2 or 3"},
		{"hello else", "HELLO 3 FOO", "-ERR syntax error in HELLO option 'FOO': want AUTH username password or SETNAME name"},
		{"auth without a password", "AUTH x", "-ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?"},
		{"count", "COMMAND COUNT", ":33"},
		{"command info", "COMMAND INFO DEL nothing", "*2 *6 $3 del :-2 *1 +fast :1 :-1 :1 $-1"},
		{"command docs", "COMMAND DOCS ping ping nothing", "*2 $4 ping *6 $7 summary $28 Answers PONG, or the message $5 group " +
			"$10 rate_limit $6 syntax $14 PING [message]"},
		{"command else", "COMMAND GETKEYS x", "-ERR unknown subcommand or wrong number of arguments for 'GETKEYS': want COMMAND COUNT, " +
			"DOCS, INFO or LIST"},
		{"quit", "QUIT", "+OK"},
		{"reset of the connection", "RESET", "+RESET"},
		{"unknown", "GET foo", "-ERR unknown command 'GET', with args beginning with: 'foo'"},
		{"too few", "CL.THROTTLE a 1 2", "-ERR wrong number of arguments for 'cl.throttle' command"},
		{"too many", "CL.THROTTLE a 1 2 3 4 5", "-ERR wrong number of arguments for 'cl.throttle' command"},
		{"no key", "DEL", "-ERR wrong number of arguments for 'del' command"},
		{"no number", "CL.THROTTLE a x 2 3", "-ERR value is not an integer or out of range: max_burst 'x': want 0 to 4294967295"},
		{"negative burst", "CL.THROTTLE a -1 2 3", "-ERR value is not an integer or out of range: max_burst '-1': want 0 to 4294967295"},
		{"large burst", "CL.THROTTLE a 4294967296 2 3", "-ERR value is not an integer or out of range: max_burst '4294967296': want 0 to 4294967295"},
		{"no count", "CL.THROTTLE a 1 0 3", "-ERR value is not an integer or out of range: count '0': want 1 to 1000000000000000"},
		{"no period", "CL.THROTTLE a 1 1 0", "-ERR value is not an integer or out of range: period '0': want 1 to 31536000"},
		{"negative quantity", "CL.THROTTLE a 1 1 1 -1",
			"-ERR value is not an integer or out of range: quantity '-1': want 0 to 9223372036854775807"},
		{"2^63", "CL.THROTTLE a 1 1 1 9223372036854775808",
			"-ERR value is not an integer or out of range: quantity '9223372036854775808': want 0 to 9223372036854775807"},
		{"2^63-1", "CL.THROTTLE a 1 1 1 9223372036854775807", "*5 :1 :2 :2 :-1 :0"},
		{"an octal number", "CL.THROTTLE a 010 1 1", "-ERR value is not an integer or out of range: max_burst '010': want 0 to 4294967295"},
		{"too long", "CL.THROTTLE a 26 1 86400", "-ERR a limit of 27 tokens that takes 648h0m0s to fill: want at most 624h0m0s; " +
			"for this limit write longest: 648h0m0s in redis: of the rule file"},
		{"too fast", "CL.THROTTLE a 1 2000000000 1", "-ERR Quota(token bucket 2e+09/s burst 2): rate of 2e+09 tokens every 1s: want at most " +
			"1000000000 tokens a second"},
		{"a short period", "GCRA a 1 1 0.5", "-ERR period '0.5' is not a number or out of range: want 1.0 to 31536000 seconds"},
		{"no number of seconds", "GCRA a 1 1 inf", "-ERR period 'inf' is not a number or out of range: want 1.0 to 31536000 seconds"},
		{"another word", "GCRA a 1 1 1 TOKEN 1", "-ERR syntax error: want GCRA key max_burst tokens_per_period period [TOKENS n]"},
		{"no limit", "WEIR.TAKE a BURST 1", "-ERR syntax error: no LIMIT: want for example LIMIT 100/m"},
		{"twice", "WEIR.TAKE a LIMIT 1/s LIMIT 2/s", "-ERR syntax error at 'LIMIT': want key LIMIT rate [BURST n] [COST n], each option once"},
		{"no value", "WEIR.TAKE a LIMIT 1/s COST", "-ERR syntax error at 'COST': want key LIMIT rate [BURST n] [COST n], each option once"},
		{"no rate", "WEIR.TAKE a LIMIT 5", `-ERR rate "5": want tokens/period, such as 100/s or 10/1500ms`},
		{"no name", "WEIR.TAKE a LIMIT x", "-ERR no limit 'x': want one of redis: limits of the rule file, or a rate such as 100/m"},
		{"burst 0", "WEIR.TAKE a LIMIT 1/s BURST 0", "-ERR value is not an integer or out of range: BURST '0': want 1 to 4294967296"},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, flat(open(t).says(resp(c.sent))))
		})
	}
}

// TestAnswersOfRESP3: in RESP3, the answers have the same content, but with maps, doubles, booleans and null.
func TestAnswersOfRESP3(t *testing.T) {
	d := open(t)
	got := d.says(resp("HELLO 3 SETNAME me", "CL.THROTTLE a 0 1 60", "CL.THROTTLE a 0 1 60", "GCRA b 0 1 1.5", "GCRA b 0 1 1.5",
		"WEIR.TAKE c LIMIT 1/500ms", "WEIR.TAKE c LIMIT 1/500ms", "CLIENT GETNAME", "RESET", "CLIENT GETNAME", "HELLO 3", "CLIENT GETNAME"))
	hello := "%7 $6 server $4 weir $7 version $5 1.2.3 $5 proto :3 $2 id :1 $4 mode $10 standalone $4 role $6 master $7 modules *0 "
	assert.Equal(t, hello+
		"*5 :0 :1 :0 :-1 :60 *5 :1 :1 :0 :60 :60 *5 :0 :1 :0 ,-1 ,1.5 *5 :1 :1 :0 ,1.5 ,1.5 "+
		"%5 $7 allowed #t $5 limit :1 $9 remaining :0 $11 retry_after ,0 $11 reset_after ,0.5 "+
		"%5 $7 allowed #f $5 limit :1 $9 remaining :0 $11 retry_after ,0.5 $11 reset_after ,0.5 $2 me +RESET $-1 "+hello+"_", flat(got))
}

// TestSecondsAreRoundedUp: seconds are rounded up, so no client comes back too early.
func TestSecondsAreRoundedUp(t *testing.T) {
	d := open(t)
	assert.Equal(t, "*5 :0 :1 :0 :-1 :2", flat(d.says(resp("CL.THROTTLE a 0 1 2"))))
	d.clock.nanos.Add(1)
	assert.Equal(t, "*5 :1 :1 :0 :2 :2", flat(d.says(resp("CL.THROTTLE a 0 1 2"))))
	d.clock.nanos.Add(int64(time.Second))
	assert.Equal(t, "*5 :1 :1 :0 :1 :1", flat(d.says(resp("CL.THROTTLE a 0 1 2"))))
	d.clock.nanos.Add(int64(time.Second) - 2)
	assert.Equal(t, "*5 :1 :1 :0 :1 :1", flat(d.says(resp("CL.THROTTLE a 0 1 2"))))
	d.clock.nanos.Add(1)
	assert.Equal(t, "*5 :0 :1 :0 :-1 :2", flat(d.says(resp("CL.THROTTLE a 0 1 2"))))
}

// TestAPipelineKeepsItsOrder: answers keep the order of the commands. This holds if takes are mixed with other
// commands, ask for different numbers of tokens, fail, or are too many to be decided at once.
func TestAPipelineKeepsItsOrder(t *testing.T) {
	d := open(t)
	assert.Equal(t, "*5 :0 :3 :2 :-1 :20 +PONG *5 :0 :3 :0 :-1 :60 -ERR wrong number of arguments for 'cl.throttle' command "+
		"*5 :1 :3 :0 :20 :60 :1 *5 :0 :3 :2 :-1 :20 *10 $7 allowed :1 $5 limit :3 $9 remaining :3 $11 retry_after $1 0 $11 reset_after $1 0 "+
		"*5 :1 :3 :3 :-1 :0 *5 :0 :3 :1 :-1 :40", flat(d.says(resp(
		"CL.THROTTLE a 2 3 60", "PING", "CL.THROTTLE a 2 3 60 2", "CL.THROTTLE a", "CL.THROTTLE a 2 3 60", "DEL a", "CL.THROTTLE a 2 3 60",
		"WEIR.REFUND a LIMIT 3/m", "CL.THROTTLE a 2 3 60 4", "CL.THROTTLE a 2 3 60 2"))))
	want, sent := "", ""
	for i := range 3 * maxTakes {
		sent += resp("CL.THROTTLE b 499 1 60")
		want += ":" + string(integerText(499-i)) + " "
	}
	got := d.says(sent)
	remaining := ""
	for i, field := range strings.Fields(flat(got)) {
		if i%6 == 3 {
			remaining += field + " "
		}
	}
	assert.Equal(t, want, remaining)
}

func integerText(n int) []byte {
	var r reply
	r.integer(int64(n))
	return r.out[1 : len(r.out)-2]
}
