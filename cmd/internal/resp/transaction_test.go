package resp

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const took = "*5 :0 :3 :2 :-1 :20"

// TestTransactions: EXEC executes the commands after MULTI in order. None is executed before EXEC.
func TestTransactions(t *testing.T) {
	for _, c := range []struct{ name, sent, want string }{
		{"a batch", "MULTI|CL.THROTTLE a 2 3 60|PING|CL.THROTTLE a 2 3 60 2|DEL a|CL.THROTTLE a 2 3 60|EXEC",
			"+OK +QUEUED +QUEUED +QUEUED +QUEUED +QUEUED *5 " + took + " +PONG *5 :0 :3 :0 :-1 :60 :1 " + took},
		{"nothing", "MULTI|EXEC", "+OK *0"},
		{"after takes that are gathered", "CL.THROTTLE a 2 3 60|MULTI|PING|EXEC", took + " +OK +QUEUED *1 +PONG"},
		{"discard", "MULTI|CL.THROTTLE a 2 3 60|DISCARD|CL.THROTTLE a 2 3 60", "+OK +QUEUED +OK " + took},
		{"twice", "MULTI|MULTI|PING|EXEC", "+OK -ERR MULTI calls can not be nested +QUEUED *1 +PONG"},
		{"without", "EXEC|DISCARD", "-ERR EXEC without MULTI -ERR DISCARD without MULTI"},
		{"a command that there is not", "MULTI|CL.THROTTLE a 2 3 60|GET x|EXEC|CL.THROTTLE a 2 3 60",
			"+OK +QUEUED -ERR unknown command 'GET', with args beginning with: 'x'  -EXECABORT Transaction discarded because of previous errors. " + took},
		{"too few arguments", "MULTI|CL.THROTTLE a|PING|EXEC|EXEC",
			"+OK -ERR wrong number of arguments for 'cl.throttle' command +QUEUED -EXECABORT Transaction discarded because of previous errors. " +
				"-ERR EXEC without MULTI"},
		{"an error of a command", "MULTI|CL.THROTTLE a x 3 60|CL.THROTTLE a 2 3 60|EXEC", "+OK +QUEUED +QUEUED *2 " +
			"-ERR value is not an integer or out of range: max_burst 'x': want 0 to 4294967295 " + took},
		{"reset", "MULTI|CL.THROTTLE a 2 3 60|RESET|EXEC|CL.THROTTLE a 2 3 60", "+OK +QUEUED +RESET -ERR EXEC without MULTI " + took},
		{"quit", "MULTI|CL.THROTTLE a 2 3 60|QUIT", "+OK +QUEUED +OK"},
		{"watch", "WATCH a|UNWATCH|MULTI|WATCH a|UNWATCH|EXEC", "-ERR WATCH is not supported: a take checks and takes in one step +OK +OK " +
			"-ERR WATCH inside MULTI is not allowed +QUEUED *1 +OK"},
		{"hello", "MULTI|HELLO 3|WEIR.PEEK a LIMIT 1/s|EXEC|CLIENT GETNAME", "+OK +QUEUED +QUEUED *2 %7 $6 server $4 weir $7 version $5 1.2.3 " +
			"$5 proto :3 $2 id :1 $4 mode $10 standalone $4 role $6 master $7 modules *0 " +
			"%5 $7 allowed #t $5 limit :1 $9 remaining :1 $11 retry_after ,0 $11 reset_after ,0 _"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t)
			assert.Equal(t, c.want, flat(d.says(resp(strings.Split(c.sent, "|")...))))
		})
	}
	d := open(t, "secret")
	assert.Equal(t, "-NOAUTH Authentication required. -NOAUTH Authentication required.", flat(d.says(resp("MULTI", "EXEC"))))
}

// TestATransactionIsDoneAtItsEnd: if a client disconnects before EXEC, its transaction takes nothing.
func TestATransactionIsDoneAtItsEnd(t *testing.T) {
	d := open(t)
	require.Equal(t, "+OK +QUEUED", flat(d.says(resp("MULTI", "CL.THROTTLE a 2 3 60"))))
	require.Equal(t, took, flat(d.says(resp("CL.THROTTLE a 2 3 60"))))
}

// TestLargeTransactions: the queue of commands is bounded, and the server does not keep all answers in memory.
func TestLargeTransactions(t *testing.T) {
	d := open(t)
	tooMuch := "-ERR a transaction of more than 262144 bytes or 16384 commands: it is discarded"
	aborted := " +QUEUED -EXECABORT Transaction discarded because of previous errors. +PONG"
	echo := "ECHO " + strings.Repeat("x", 60_000)
	got := flat(d.says(resp("MULTI", echo, echo, echo, echo, echo, "PING", "EXEC", "PING")))
	assert.Equal(t, "+OK"+strings.Repeat(" +QUEUED", 4)+" "+tooMuch+aborted, got)
	got = flat(d.says("MULTI\r\n" + strings.Repeat("PING\r\n", queueCommands+2) + "EXEC\r\nPING\r\n"))
	assert.Equal(t, "+OK"+strings.Repeat(" +QUEUED", queueCommands)+" "+tooMuch+aborted, got)
	got = flat(d.says("MULTI\r\n" + strings.Repeat("COMMAND\r\n", 200) + "EXEC\r\nPING\r\n"))
	assert.True(t, strings.HasSuffix(got, " +PONG"))
	assert.Equal(t, 200, strings.Count(got, " *33 "))
}

// TestEmptyArgumentsOfATransaction: a transaction with only empty arguments is also bounded. Each empty argument takes
// a byte for its length.
func TestEmptyArgumentsOfATransaction(t *testing.T) {
	args := make([][]byte, maxArguments)
	args[0] = []byte("DEL")
	var queue transaction
	var b batch
	for !queue.aborted && queue.count < 15_000 {
		queue.add(&b, args)
		require.LessOrEqual(t, cap(queue.queue), 328<<10)
		require.LessOrEqual(t, len(queue.queue), queueBytes)
	}
	require.True(t, queue.aborted)
	assert.Equal(t, "-ERR a transaction of more than 262144 bytes or 16384 commands: it is discarded", flat(string(b.out[strings.LastIndex(string(b.out), "-"):])))
}

// TestArgumentsOfATransaction: queued arguments stay unchanged. This includes empty arguments, and arguments whose
// length takes several bytes.
func TestArgumentsOfATransaction(t *testing.T) {
	var queue transaction
	var b batch
	sent := [][][]byte{{[]byte("DEL"), nil, []byte("a"), nil}, {[]byte("ECHO"), bytes.Repeat([]byte("x"), 127)},
		{[]byte("ECHO"), bytes.Repeat([]byte("y"), 128)}, {[]byte("ECHO"), bytes.Repeat([]byte("z"), 60_000)}, {[]byte("PING")}}
	for _, args := range sent {
		queue.add(&b, args)
	}
	for _, args := range sent {
		got := queue.next(nil)
		require.Len(t, got, len(args))
		for i := range args {
			require.Equal(t, string(args[i]), string(got[i]))
		}
	}
	assert.Empty(t, queue.queue)
}

// TestKeysThatOwe: EXISTS and TTL find a key that owes tokens. TTL returns when the tokens will have come back.
func TestKeysThatOwe(t *testing.T) {
	d := open(t)
	assert.Equal(t, ":0 :-2 :-2", flat(d.says(resp("EXISTS a b", "TTL a", "PTTL a"))))
	assert.Equal(t, "*5 :0 :3 :1 :-1 :40 *5 :0 :1 :0 :-1 :1 :2 :40 :40000 :1", flat(d.says(resp("CL.THROTTLE a 2 3 60 2", "CL.THROTTLE b 0 1 1",
		"EXISTS a b c", "TTL a", "PTTL a", "TTL b"))))
	assert.Equal(t, ":2", flat(d.says(resp("EXISTS a a"))))
	d.clock.nanos.Add(int64(1500*time.Millisecond) + 1)
	assert.Equal(t, ":1 :39 :38500 :-2", flat(d.says(resp("EXISTS a b", "TTL a", "PTTL a", "TTL b"))))
	assert.Equal(t, "*5 :0 :3 :0 :-1 :59", flat(d.says(resp("CL.THROTTLE a 2 3 60"))), "a look changes nothing")
	assert.Equal(t, ":1 :0 :-2", flat(d.says(resp("DEL a", "EXISTS a", "TTL a"))))
}

// TestNegativeQuantities: a negative quantity gives tokens back, if the rule file permits this.
func TestNegativeQuantities(t *testing.T) {
	d := open(t)
	settings := *d.settings.Load()
	settings.Negative = true
	d.settings.Store(&settings)
	assert.Equal(t, "*5 :0 :3 :0 :-1 :60 *5 :0 :3 :2 :-1 :20 *5 :0 :3 :3 :-1 :0 *5 :0 :3 :3 :-1 :0",
		flat(d.says(resp("CL.THROTTLE a 2 3 60 3", "CL.THROTTLE a 2 3 60 -2", "CL.THROTTLE a 2 3 60 -9223372036854775808", "RL.THROTTLE a 2 3 60 -1"))))
	assert.Equal(t, "*5 :0 :3 :0 :-1 :60 *5 :0 :3 :1 :-1 :40 *5 :1 :3 :1 :20 :40",
		flat(d.says(resp("CL.THROTTLE a 2 3 60 3", "CL.THROTTLE a 2 3 60 -1", "CL.THROTTLE a 2 3 60 2"))), "in order with takes that are gathered")
	assert.Equal(t, "-ERR value is not an integer or out of range: TOKENS '-1': want 0 to 9223372036854775807", flat(d.says(resp("GCRA a 2 3 60 TOKENS -1"))))
}
