package resp

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// openNamed returns a door (a running server) with two limits that commands can name. The limit slow is 3 per minute,
// and fast is 1,000 per second.
func openNamed(t *testing.T) *door {
	t.Helper()
	d := open(t)
	d.setLimits(map[string]engine.Policy{
		"slow": engine.TokenBucket(engine.Per(3, time.Minute), 3), "fast": engine.TokenBucket(engine.PerSecond(1000), 1000),
	})
	return d
}

func (d *door) setLimits(limits map[string]engine.Policy) {
	next := *d.settings.Load()
	next.Limits = limits
	d.settings.Store(&next)
}

// TestNamedLimits: every command that has a limit accepts the name of a limit instead.
func TestNamedLimits(t *testing.T) {
	const none = "-ERR no limit 'gone': want one of redis: limits of the rule file, or a rate such as 100/m"
	for _, c := range []struct{ name, sent, want string }{
		{"cell", "CL.THROTTLE a slow|cl.throttle a slow 2|RL.THROTTLE a slow", "*5 :0 :3 :2 :-1 :20 *5 :0 :3 :0 :-1 :60 *5 :1 :3 :0 :20 :60"},
		{"a key of its own", "CL.THROTTLE a slow 3|CL.THROTTLE a fast|CL.THROTTLE a 2 3 60|CL.THROTTLE slow:a 2 3 60",
			"*5 :0 :3 :0 :-1 :60 *5 :0 :1000 :999 :-1 :1 *5 :0 :3 :2 :-1 :20 *5 :1 :3 :0 :20 :60"},
		{"a fast limit brings nothing back of a slow one", "CL.THROTTLE a slow 3|CL.THROTTLE a fast 999|CL.THROTTLE a fast|CL.THROTTLE a slow",
			"*5 :0 :3 :0 :-1 :60 *5 :0 :1000 :1 :-1 :1 *5 :0 :1000 :0 :-1 :1 *5 :1 :3 :0 :20 :60"},
		{"the key as others see it", "CL.THROTTLE a slow 3|TTL slow:a|EXISTS a slow:a|DEL slow:a|CL.THROTTLE a slow", "*5 :0 :3 :0 :-1 :60 :60 :1 :1 *5 :0 :3 :2 :-1 :20"},
		{"take", "WEIR.TAKE a LIMIT slow COST 3", "*10 $7 allowed :1 $5 limit :3 $9 remaining :0 $11 retry_after $1 0 $11 reset_after $2 60"},
		{"charge and refund", "WEIR.CHARGE a COST 3 LIMIT slow|WEIR.REFUND a LIMIT slow COST 2", "*12 $7 allowed :0 $5 limit :3 $9 remaining :0 " +
			"$11 retry_after $2 20 $11 reset_after $2 60 $4 lost :0 *10 $7 allowed :1 $5 limit :3 $9 remaining :2 $11 retry_after $1 0 $11 reset_after $2 20"},
		{"several, of one key", "WEIR.TAKEALL 2 a a LIMIT slow LIMIT fast COST 1001|WEIR.PEEK a LIMIT slow", "*4 $7 allowed :0 $6 limits *2 " +
			"*10 $7 allowed :1 $5 limit :3 $9 remaining :3 $11 retry_after $1 0 $11 reset_after $1 0 " +
			"*10 $7 allowed :0 $5 limit :1000 $9 remaining :1000 $11 retry_after $2 -1 $11 reset_after $1 0 " +
			"*10 $7 allowed :1 $5 limit :3 $9 remaining :3 $11 retry_after $1 0 $11 reset_after $1 0"},
		{"one for several", "WEIR.TAKEALL 2 a b LIMIT slow|TTL slow:a|TTL slow:b", "*4 $7 allowed :1 $6 limits *2 " +
			"*10 $7 allowed :1 $5 limit :3 $9 remaining :2 $11 retry_after $1 0 $11 reset_after $2 20 " +
			"*10 $7 allowed :1 $5 limit :3 $9 remaining :2 $11 retry_after $1 0 $11 reset_after $2 20 :20 :20"},
		{"the same key twice", "WEIR.TAKEALL 2 a slow:a LIMIT slow LIMIT 1/s", "-ERR the same key twice: want each key once"},
		{"none of that name", "CL.THROTTLE a gone|WEIR.TAKE a LIMIT gone|WEIR.HOLD a LIMIT gone|WEIR.TAKEALL 1 a LIMIT gone|CL.THROTTLE a SLOW",
			strings.Repeat(none+" ", 4) + strings.ReplaceAll(none, "gone", "SLOW")},
		{"no number", "CL.THROTTLE a slow x", "-ERR value is not an integer or out of range: quantity 'x': want 0 to 9223372036854775807"},
		{"neither name nor numbers", "CL.THROTTLE a 1|CL.THROTTLE a 1 2|RL.THROTTLE a 15 30", "-ERR wrong number of arguments for 'cl.throttle' command " +
			"-ERR wrong number of arguments for 'cl.throttle' command -ERR wrong number of arguments for 'rl.throttle' command"},
		{"a burst", "WEIR.TAKE a LIMIT slow BURST 9", "-ERR BURST: the limit 'slow' has the burst of the rule file"},
		{"a burst before it", "WEIR.TAKE a BURST 9 LIMIT slow", "-ERR BURST: the limit 'slow' has the burst of the rule file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, flat(openNamed(t).says(resp(strings.Split(c.sent, "|")...))))
		})
	}
}

// TestNamedLimitsAfterAReload: if the numbers of a limit change, tokens still count, and its holds can be settled. If a
// limit is gone when EXEC runs a command that names it, only this command gets an error.
func TestNamedLimitsAfterAReload(t *testing.T) {
	d := openNamed(t)
	c := d.dial()
	ask := func(want string, lines ...string) {
		t.Helper()
		_, err := io.WriteString(c, resp(lines...))
		require.NoError(t, err)
		answer, room := "", make([]byte, 4096)
		for len(flat(answer)) < len(want) {
			n, err := c.Read(room)
			require.NoError(t, err, answer)
			answer += string(room[:n])
		}
		assert.Equal(t, want, flat(answer))
	}
	ask("*5 :0 :3 :1 :-1 :40", "CL.THROTTLE a slow 2")
	ask("+OK", "MULTI")
	ask("+QUEUED", "CL.THROTTLE a slow")
	ask("+QUEUED", "WEIR.TAKE a LIMIT fast COST 0")
	ask("+QUEUED", "CL.THROTTLE b 2 3 60")
	id := d.ask("WEIR.HOLD h LIMIT fast COST 10")["id"]
	d.setLimits(map[string]engine.Policy{"slow": engine.TokenBucket(engine.Per(6, time.Minute), 6)})
	ask("*3 *5 :0 :6 :3 :-1 :30 -ERR no limit 'fast': want one of redis: limits of the rule file, or a rate such as 100/m *5 :0 :3 :2 :-1 :20", "EXEC")
	assert.Equal(t, map[string]string{"outcome": "settled", "lost": "0"}, d.ask("WEIR.SETTLE "+id+" 4"))
	ask("*10 $7 allowed :1 $5 limit :1000 $9 remaining :996 $11 retry_after $1 0 $11 reset_after $5 0.004", "WEIR.PEEK fast:h LIMIT 1000/s")
}
