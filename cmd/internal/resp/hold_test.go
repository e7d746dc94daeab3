package resp

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ask sends a command about one limit, and returns the names and values of its answer.
func (d *door) ask(command string) map[string]string {
	d.t.Helper()
	got := map[string]string{}
	fields := strings.Fields(regexp.MustCompile(`\$\d+ `).ReplaceAllString(flat(d.says(resp(command))), ""))
	if !strings.HasPrefix(fields[0], "*") {
		got["error"] = strings.Join(fields, " ")
		return got
	}
	for i := 1; i+1 < len(fields); i += 2 {
		got[fields[i]] = strings.TrimPrefix(fields[i+1], ":")
	}
	return got
}

func (d *door) remaining(key string) string {
	d.t.Helper()
	return d.ask("WEIR.PEEK " + key + " LIMIT 100/d")["remaining"]
}

// TestHoldAndSettle: a hold takes its estimate until it is settled with the cost. The cost may be lower or higher than
// the estimate, or zero.
func TestHoldAndSettle(t *testing.T) {
	d := open(t)
	hold := func(cost string) string {
		got := d.ask("WEIR.HOLD a LIMIT 100/d COST " + cost)
		require.Equal(t, "1", got["allowed"], got)
		return got["id"]
	}
	less, more, none := hold("30"), hold("30"), hold("30")
	require.Equal(t, "10", d.remaining("a"))
	assert.Equal(t, "*12 $2 id $-1 $7 allowed :0 $5 limit :100 $9 remaining :10 $11 retry_after $3 864 $11 reset_after $5 77760",
		flat(d.says(resp("WEIR.HOLD a LIMIT 100/d COST 11"))))
	assert.Equal(t, map[string]string{"outcome": "settled", "lost": "0"}, d.ask("WEIR.SETTLE "+less+" 10"))
	require.Equal(t, "30", d.remaining("a"))
	assert.Equal(t, "settled", d.ask("WEIR.SETTLE " + more + " 45")["outcome"])
	require.Equal(t, "15", d.remaining("a"))
	assert.Equal(t, "settled", d.ask("WEIR.SETTLE " + none + " 0")["outcome"])
	require.Equal(t, "45", d.remaining("a"))
	for _, id := range []string{less, more, none} {
		for _, cost := range []string{"0", "99"} {
			assert.Equal(t, "repeated", d.ask("WEIR.SETTLE " + id + " " + cost)["outcome"])
			require.Equal(t, "45", d.remaining("a"))
		}
	}
	all := d.ask("WEIR.HOLD b LIMIT 100/d COST 1000")
	assert.Equal(t, "1", all["allowed"], "an estimate above the limit is held as the limit")
	assert.Equal(t, "800", d.ask("WEIR.SETTLE " + all["id"] + " 1800")["lost"], "beyond ten limits")
}

// TestLateAndForgedHolds: a settlement with a late id gives nothing back, but charges the cost beyond the estimate. An
// id that this server has not sealed is an error.
func TestLateAndForgedHolds(t *testing.T) {
	d := open(t)
	for asked, after := range map[string]time.Duration{" FOR 5": 5 * time.Second, "": 10 * time.Minute, " FOR 86400": 24 * time.Hour} {
		key := "k" + strings.ReplaceAll(asked, " ", "")
		less, more := d.ask("WEIR.HOLD " + key + " LIMIT 100/20d COST 40" + asked)["id"], d.ask("WEIR.HOLD " + key + " LIMIT 100/20d COST 40" + asked)["id"]
		d.clock.nanos.Add(int64(after))
		require.NotEmpty(t, less)
		before, err := strconv.Atoi(d.ask("WEIR.PEEK " + key + " LIMIT 100/20d")["remaining"])
		require.NoError(t, err)
		require.Less(t, before, 30)
		assert.Equal(t, "late", d.ask("WEIR.SETTLE " + less + " 0")["outcome"])
		assert.Equal(t, fmt.Sprint(before), d.ask("WEIR.PEEK " + key + " LIMIT 100/20d")["remaining"])
		assert.Equal(t, "late", d.ask("WEIR.SETTLE " + more + " 50")["outcome"])
		assert.Equal(t, "repeated", d.ask("WEIR.SETTLE " + more + " 60")["outcome"])
		assert.Equal(t, fmt.Sprint(before-10), d.ask("WEIR.PEEK " + key + " LIMIT 100/20d")["remaining"])
	}
	id := open(t).ask("WEIR.HOLD a LIMIT 100/d")["id"]
	require.NotEmpty(t, id)
	for _, forged := range []string{id, "x", strings.Repeat("A", 200)} {
		assert.Equal(t, "-ERR no such id: it was not sealed with the key of this server", d.ask("WEIR.SETTLE " + forged + " 1")["error"])
	}
}

// TestHoldsOutliveATable: the id of a hold is used after the table was replaced. It gives nothing back, and charges the
// cost beyond the estimate. It can still be used only once.
func TestHoldsOutliveATable(t *testing.T) {
	d := open(t)
	less, more := d.ask("WEIR.HOLD a LIMIT 100/d COST 40")["id"], d.ask("WEIR.HOLD a LIMIT 100/d COST 40")["id"]
	used := d.ask("WEIR.HOLD a LIMIT 100/d COST 10")["id"]
	require.Equal(t, "settled", d.ask("WEIR.SETTLE " + used + " 10")["outcome"])
	next := *d.settings.Load()
	next.Limiter = d.clock.limiter(t, longestOfTests)
	d.settings.Store(&next)
	require.Equal(t, "1", d.ask("WEIR.TAKE a LIMIT 100/d COST 90")["allowed"])
	assert.Equal(t, "settled", d.ask("WEIR.SETTLE " + less + " 0")["outcome"])
	assert.Equal(t, "repeated", d.ask("WEIR.SETTLE " + used + " 0")["outcome"])
	require.Equal(t, "10", d.remaining("a"))
	assert.Equal(t, "settled", d.ask("WEIR.SETTLE " + more + " 45")["outcome"])
	require.Equal(t, "5", d.remaining("a"))
}

// TestTakesOverSeveralKeys: a take from several keys takes from all of them or from none.
func TestTakesOverSeveralKeys(t *testing.T) {
	d := open(t)
	const one = "$7 allowed :1 $5 limit :3 $9 remaining :1 $11 retry_after $1 0 $11 reset_after $2 40"
	assert.Regexp(t, `^\*4 \$7 allowed :1 \$6 limits \*2 \*10 `+regexp.QuoteMeta(one)+` \*10 \$7 allowed :1 \$5 limit :9 \$9 remaining :8 `,
		flat(d.says(resp("WEIR.TAKEALL 2 a b LIMIT 3/m COST 2 LIMIT 9/m"))))
	got := flat(d.says(resp("WEIR.TAKEALL 2 b a LIMIT 9/m LIMIT 3/m COST 2", "WEIR.PEEK b LIMIT 9/m", "WEIR.PEEK a LIMIT 3/m")))
	assert.Contains(t, got, "*4 $7 allowed :0 $6 limits *2 *10 $7 allowed :1 $5 limit :9 $9 remaining :8 ")
	assert.Contains(t, got, "*10 $7 allowed :0 $5 limit :3 $9 remaining :1 $11 retry_after $2 20 ")
	assert.Equal(t, 2, strings.Count(got, "$5 limit :9 $9 remaining :8"), "nothing was taken")
	assert.Contains(t, flat(d.says(resp("WEIR.TAKEALL 3 x y z LIMIT 5/m COST 5", "WEIR.TAKEALL 2 new x LIMIT 5/m", "WEIR.PEEK new LIMIT 5/m"))),
		"*10 $7 allowed :1 $5 limit :5 $9 remaining :5 $11 retry_after $1 0 $11 reset_after $1 0", "one limit for all")
	for sent, want := range map[string]string{
		"WEIR.TAKEALL 2 a a LIMIT 1/s":                          "-ERR the same key twice: want each key once",
		"WEIR.TAKEALL 3 a b LIMIT 1/s LIMIT 2/s":                "-ERR syntax error at '1/s': want key LIMIT rate [BURST n] [COST n], each option once",
		"WEIR.TAKEALL 3 a b LIMIT":                              "-ERR 0 limits for 3 keys: want a LIMIT for each key, or one for all",
		"WEIR.TAKEALL 9 a b LIMIT 1/s":                          "-ERR 4 keys: want as many as numkeys says, 9",
		"WEIR.TAKEALL 0 a b LIMIT 1/s":                          "-ERR value is not an integer or out of range: numkeys '0': want 1 to 64",
		"WEIR.TAKEALL 65 a b LIMIT 1/s":                         "-ERR value is not an integer or out of range: numkeys '65': want 1 to 64",
		"WEIR.TAKEALL 3 a b c LIMIT 1/s LIMIT 2/s":              "-ERR 2 limits for 3 keys: want a LIMIT for each key, or one for all",
		"WEIR.TAKEALL 1 a LIMIT 1/s LIMIT 2/s":                  "-ERR 2 limits for 1 keys: want a LIMIT for each key, or one for all",
		"WEIR.TAKEALL 1 a COST 1 LIMIT 1/s":                     "-ERR syntax error: no LIMIT: want for example LIMIT 100/m",
		"WEIR.HOLD a LIMIT 1/s FOR 0":                           "-ERR value is not an integer or out of range: FOR '0': want 1 to 86400",
		"WEIR.HOLD a LIMIT 1/s FOR 86401":                       "-ERR value is not an integer or out of range: FOR '86401': want 1 to 86400",
		"WEIR.SETTLE x -1":                                      "-ERR value is not an integer or out of range: cost '-1': want 0 to 9223372036854775807",
		"WEIR.HOLD " + strings.Repeat("k", 5000) + " LIMIT 1/s": "-ERR keys of 5000 bytes together: want at most 4096 of what is held",
	} {
		assert.Equal(t, want, flat(d.says(resp(sent))), sent)
	}
}

// TestHoldsOfSeveralKeys: a hold for several keys takes from all of them or from none, and has one id.
func TestHoldsOfSeveralKeys(t *testing.T) {
	d := open(t)
	got := flat(d.says(resp("WEIR.HOLDALL 2 a b LIMIT 100/d COST 30 LIMIT 50/d COST 30 FOR 60")))
	id := regexp.MustCompile(`\$2 id \$\d+ (\S+) \$7 allowed :1 \$6 limits \*2 `).FindStringSubmatch(got)
	require.NotNil(t, id, got)
	assert.Contains(t, flat(d.says(resp("WEIR.HOLDALL 2 a b LIMIT 100/d COST 30 LIMIT 50/d COST 30"))), "*6 $2 id $-1 $7 allowed :0 $6 limits *2 ")
	require.Equal(t, "70", d.remaining("a"))
	assert.Equal(t, "settled", d.ask("WEIR.SETTLE " + id[1] + " 10")["outcome"])
	require.Equal(t, "90", d.remaining("a"))
	require.Equal(t, "40", d.ask("WEIR.PEEK b LIMIT 50/d")["remaining"])
}

// TestAHoldEndsOnAnotherConnection: a hold can be settled on a connection other than its own, in RESP3 and in a
// transaction.
func TestAHoldEndsOnAnotherConnection(t *testing.T) {
	d := open(t)
	c := d.dial()
	_, err := io.WriteString(c, resp("MULTI", "WEIR.HOLD a LIMIT 100/d COST 60", "EXEC"))
	require.NoError(t, err)
	lines := bufio.NewReader(c)
	id := ""
	for id == "" {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if len(line) > 100 {
			id = strings.TrimSpace(line)
		}
	}
	require.NoError(t, c.Close())
	assert.True(t, strings.HasSuffix(flat(d.says(resp("HELLO 3", "WEIR.SETTLE "+id+" 20"))), "%2 $7 outcome $7 settled $4 lost :0"))
	require.Equal(t, "80", d.remaining("a"))
}

// TestSettleWhereALimitDoesNotFit: after a reload, the table does not accept the limit of a hold. Settling the hold is
// then an error, and its id stays valid.
func TestSettleWhereALimitDoesNotFit(t *testing.T) {
	d := open(t)
	id := d.ask("WEIR.HOLD a LIMIT 100/20d COST 40")["id"]
	before := d.settings.Load()
	next := *before
	next.Limiter, next.Longest = d.clock.limiter(t, time.Hour), time.Hour
	d.settings.Store(&next)
	assert.Contains(t, d.ask("WEIR.SETTLE " + id + " 0")["error"], "-ERR ")
	d.settings.Store(before)
	assert.Equal(t, "settled", d.ask("WEIR.SETTLE " + id + " 0")["outcome"])
	require.Equal(t, "100", d.remaining("a"))
}
