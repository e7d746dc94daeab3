package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/rulefile"
)

func runRules(t *testing.T, rules, log string, options RulesOptions) *RulesReport {
	t.Helper()
	f, err := rulefile.Parse("weir.yaml", []byte(rules))
	require.NoError(t, err)
	r, err := RunRules(f, options, accesslog.NewLog(strings.NewReader(log)))
	require.NoError(t, err)
	return r
}

// logLine returns a log line with a request at the given second of a fixed day.
func logLine(host string, second int, request, status string) string {
	at := time.Unix(1_700_000_000+int64(second), 0).UTC().Format("02/Jan/2006:15:04:05 -0700")
	return host + ` - - [` + at + `] "` + request + `" ` + status + ` 1 "-" "agent"` + "\n"
}

// TestAllOrNothing: if one rule refuses a request, no tokens are taken from the other rules. For each rule, the report
// has its own refusals and, separately, the requests that only other rules refuse.
func TestAllOrNothing(t *testing.T) {
	const rules = `rules:
- {name: both, key: global, rate: 1/h, burst: 3}
- {name: mine, rate: 1/h, burst: 1, match: {path: /a}}
- {name: shadow, rate: 1/h, burst: 1, shadow: true}
`
	a := func(host string) string { return logLine(host, 0, "GET /a HTTP/1.1", "200") }
	r := runRules(t, rules, a("h1")+ // all admit it: "both" has 2 left, "mine" and "shadow" have none left for h1
		a("h1")+ // "mine" refuses it, "both" keeps its 2, and "shadow" is not asked
		a("h2")+ // all admit it: "both" has 1 left
		logLine("h1", 0, "GET /b HTTP/1.1", "200")+ // admitted, but refused without shadow mode: "both" has 0 left
		a("h3")+ // "both" refuses it, "mine" keeps its token for h3
		a("h3"), RulesOptions{})
	both, mine, shadow := r.Rules[0], r.Rules[1], r.Rules[2]
	assert.Equal(t, [4]uint64{6, 3, 2, 1}, [4]uint64{both.Matched, both.Allowed, both.Refused, both.Elsewhere})
	assert.Equal(t, [4]uint64{5, 2, 1, 2}, [4]uint64{mine.Matched, mine.Allowed, mine.Refused, mine.Elsewhere})
	assert.Equal(t, [4]uint64{6, 2, 1, 3}, [4]uint64{shadow.Matched, shadow.Allowed, shadow.Refused, shadow.Elsewhere})
	assert.Equal(t, uint64(3), r.Refused)
	assert.Equal(t, []Key{{"h1", 2, 1}}, mine.RefusedKeys)
	assert.Equal(t, []Key{{"everybody", 6, 2}}, both.RefusedKeys)
}

// TestALimitOfTheCalendarOfALog: the time zone of the limit determines when its month begins. The zone of the log's
// times does not.
func TestALimitOfTheCalendarOfALog(t *testing.T) {
	const december = 1_356_400 // 30 November at 15:00 UTC, when December begins in Tokyo
	log := strings.Repeat(logLine("h", december-1, "GET / HTTP/1.1", "200"), 6) + strings.Repeat(logLine("h", december, "GET / HTTP/1.1", "200"), 6)
	r := runRules(t, "rules: [{name: a, rate: 5/month, algorithm: fixed-window, zone: Asia/Tokyo}]", log, RulesOptions{})
	assert.Equal(t, [2]uint64{10, 2}, [2]uint64{r.Rules[0].Allowed, r.Rules[0].Refused})
}

func TestRefundsCostsAndKeysOfALog(t *testing.T) {
	const rules = `client_ip: {ipv6_prefix: 64}
rules:
- {name: failures, rate: 1/h, burst: 1, refund_status: 2xx, match: {path: /login}}
- {name: dear, rate: 1/h, burst: 4, cost: 2, key: [method, path], match: {path: /dear}}
- {name: agent, rate: 1/h, burst: 4, key: "header:User-Agent or none"}
`
	r := runRules(t, rules,
		logLine("2001:db8::1", 0, "POST //login/. HTTP/1.1", "200")+ // the path is /login in some readings
			logLine("2001:db8::1", 0, "POST //login HTTP/1.1", "200")+
			logLine("2001:db8::2", 0, "POST /login HTTP/1.1", "401")+
			logLine("2001:db8::3", 0, "POST /%6cogin HTTP/1.1", "200"), RulesOptions{})
	failures := r.Rules[0]
	assert.Equal(t, [2]uint64{4, 1}, [2]uint64{failures.Matched, failures.Refused})
	assert.Equal(t, []Key{{"2001:db8::/64", 4, 1}}, failures.RefusedKeys)
	agent := r.Rules[2]
	assert.Equal(t, [3]uint64{4, 0, 1}, [3]uint64{agent.Matched, agent.Refused, agent.Elsewhere})

	r = runRules(t, rules, strings.Repeat(logLine("h", 0, "MADEUP /dear?x=1 HTTP/1.1", "200"), 3), RulesOptions{})
	assert.Equal(t, []Key{{"other /dear", 3, 1}}, r.Rules[1].RefusedKeys)
}

func TestWhatALogCannotTell(t *testing.T) {
	const rules = `rules:
- {name: host, rate: 1/h, match: {host: a.example}}
- {name: by-host, rate: 1/h, key: host}
- {name: header, rate: 1/h, match: {header: {X-Env: prod}}}
- {name: key, rate: 1/h, key: header:X-API-Key}
- {name: cookie, rate: 1/h, key: cookie:sid or none}
- {name: tiers, rate: 1/h, burst: 5, tiers: {header: X-Plan, values: {b: {burst: 9}}}, cost: {header: X-Cost, default: 2, max: 3}}
- {name: bot, rate: 1/h, key: header:User-Agent, match: {header: {Referer: "*"}}}
- {name: slow, concurrency: 3}
- {name: budget, rate: 1000/m, tokens: {}}
- {name: estimated, rate: 1000/m, tokens: {estimate: 100}}
- {name: answered, rate: 1000/m, cost: {from: "header:X-Cost", estimate: 5}}
`
	log := logLine("h", 0, "GET / HTTP/1.1", "200")
	r := runRules(t, rules, log, RulesOptions{})
	var remarks []string
	for i := range r.Rules {
		remarks = append(remarks, r.Rules[i].Remarks()...)
	}
	assert.Equal(t, []string{
		"cannot be judged from this log: the log does not have the host of a request: name it with --host",
		"cannot be judged from this log: its key has the host, which the log does not have: name it with --host",
		"cannot be judged from this log: the log does not have the header X-Env that it matches",
		"cannot be judged from this log: the log does not have the header X-Api-Key of its key",
		"cannot be judged from this log: the log does not have the cookie sid of its key",
		"token bucket 1/h burst 5, by ip, for all requests",
		"all requests are in the rule's own tier: the log does not have X-Plan",
		"every request costs 2: the log does not have X-Cost",
		"token bucket 1/h burst 1, by header:User-Agent or ip, for any header Referer",
		"cannot be judged from this log: a log does not say which requests were in flight at one time",
		"cannot be judged from this log: the cost comes from the answer, which the log does not have: see weir replay --usage for tokens of language models",
		"cannot be judged from this log: the cost comes from the answer, which the log does not have: see weir replay --usage for tokens of language models",
		"cannot be judged from this log: the cost comes from the answer, which the log does not have: see weir replay --usage for tokens of language models",
	}, remarks)
	assert.Equal(t, uint64(1), r.Rules[5].Matched)
	assert.Equal(t, uint64(0), r.Rules[6].Matched, "its referer is -")

	r = runRules(t, rules, log+logLine("h", 0, "GET http://b.example/ HTTP/1.1", "200"),
		RulesOptions{Host: "a.example"})
	assert.Empty(t, r.Rules[0].Blind)
	assert.Equal(t, uint64(1), r.Rules[0].Matched, "the other line has its own host")
	assert.Equal(t, uint64(2), r.Rules[1].Keys)
}

func TestWhatIsNoRequest(t *testing.T) {
	r := runRules(t, "rules: [{name: a, rate: 1/h, burst: 1}]",
		logLine("h", 0, "-", "408")+logLine("h", 0, `\x16\x03\x01`, "400")+logLine("h", 0, "GET nothing HTTP/1.1",
			"400")+
			logLine("h", 0, "GET / HTTP/1.0", "200")+logLine("h", 0, "OPTIONS * HTTP/1.1", "200"), RulesOptions{})
	assert.Equal(t, uint64(3), r.NotHTTP)
	assert.Equal(t, uint64(5), r.Requests)
	assert.Equal(t, [2]uint64{2, 1}, [2]uint64{r.Rules[0].Matched, r.Rules[0].Refused})
}

type bucket struct{ level, at int64 }

func (b *bucket) has(now, interval, burst, n int64) bool {
	b.level, b.at = min(b.level+now-b.at, burst*interval), now
	return b.level >= n*interval
}

// TestRulesAgainstTheirDefinition: the results of rules on a real log equal the results of buckets that are computed
// from their definition. These buckets have another parser.
func TestRulesAgainstTheirDefinition(t *testing.T) {
	text, err := os.ReadFile("testdata/apache_access_excerpt.log")
	require.NoError(t, err)
	r := runRules(t, `rules:
- {name: all, key: global, rate: 6/m, burst: 30}
- {name: client, rate: 3/m, burst: 3, match: {method: GET}}
- {name: images, rate: 1/h, burst: 1, key: [ip, method], match: {path: [/images/, "/{$}", /presentations/]}, shadow: true}
- {name: agents, rate: 6/m, burst: 4, cost: 2, key: header:User-Agent, refund_status: 304}
`, string(text), RulesOptions{Trace: true})

	type rule struct {
		interval, burst, cost int64
		shadow                bool
		buckets               map[string]*bucket
		matched, refused      uint64
	}
	second := int64(time.Second)
	rules := []*rule{
		{interval: 10 * second, burst: 30, cost: 1}, {interval: 20 * second, burst: 3, cost: 1},
		{interval: 3600 * second, burst: 1, cost: 1, shadow: true}, {interval: 10 * second, burst: 4, cost: 2},
	}
	for _, r := range rules {
		r.buckets = map[string]*bucket{}
	}
	line := regexp.MustCompile(`^(\S+) .*?\[([^\]]+)\] "(\S+) (\S+) [^"]*" (\d+) \S+ "[^"]*" "(.*?)"?$`)
	var now int64
	var refusedAtAll uint64
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	times := map[string]int64{}
	for _, l := range lines {
		m := line.FindStringSubmatch(l)
		require.NotNil(t, m, l)
		at, err := time.Parse("02/Jan/2006:15:04:05 -0700", m[2])
		require.NoError(t, err)
		times[l] = at.UnixNano()
	}
	slices.SortStableFunc(lines, func(a, b string) int { return cmp.Compare(times[a], times[b]) })
	for _, l := range lines {
		m := line.FindStringSubmatch(l)
		now = times[l]
		where, _, _ := strings.Cut(m[4], "?")
		agent := m[6]
		if agent == "-" {
			agent = m[1] // without the header, the address counts
		}
		keys := []string{"", "", "", agent}
		matches := []bool{
			true, m[3] == "GET" || m[3] == "HEAD",
			strings.HasPrefix(where, "/images/") || strings.HasPrefix(where, "/presentations/") || where == "/", true,
		}
		keys[1], keys[2] = m[1], m[1]+" "+m[3]
		var refused bool
		passes := make([]bool, len(rules))
		for i, r := range rules {
			if !matches[i] {
				continue
			}
			b := r.buckets[keys[i]]
			if b == nil {
				b = &bucket{r.burst * r.interval, now}
				r.buckets[keys[i]] = b
			}
			passes[i] = b.has(now, r.interval, r.burst, r.cost)
			refused = refused || !passes[i] && !r.shadow
		}
		if refused {
			refusedAtAll++
		}
		for i, r := range rules {
			if !matches[i] {
				continue
			}
			r.matched++
			switch {
			case !passes[i] && !(r.shadow && refused):
				r.refused++
			case !refused && !(i == 3 && m[5] == "304"):
				r.buckets[keys[i]].level -= r.cost * r.interval
			}
		}
	}
	assert.Equal(t, refusedAtAll, r.Refused)
	for i, want := range rules {
		got := r.Rules[i]
		assert.Equal(t, want.matched, got.Matched, got.Rule.Name)
		assert.Equal(t, want.refused, got.Refused, got.Rule.Name)
		assert.Equal(t, uint64(len(want.buckets)), got.Keys, got.Rule.Name)
		assert.Positive(t, got.Refused, "%s: a rule that refuses nobody shows nothing", got.Rule.Name)
		assert.Equal(t, want.matched, got.Trace.Requests)
		assert.Equal(t, len(want.buckets), got.Trace.Keys)
	}
}

func TestSeries(t *testing.T) {
	start := time.Date(2026, 1, 1, 10, 0, 7, 0, time.UTC)
	var s Series
	refused := map[int64]uint64{}
	all := uint64(0)
	for i := range 10_000 {
		at := start.Add(time.Duration(i) * 37 * time.Second)
		s.add(at, i%3 == 0)
		all++
		if i%3 == 0 {
			refused[at.Unix()]++
		}
	}
	assert.Equal(t, time.Hour, s.Bin)
	assert.Equal(t, start.Truncate(time.Hour), s.Start.UTC())
	assert.LessOrEqual(t, len(s.Bins), maxBins)
	for i, b := range s.Bins {
		want := uint64(0)
		for at, n := range refused {
			if from := s.Start.Unix() + int64(i)*3600; at >= from && at < from+3600 {
				want += n
			}
		}
		require.Equal(t, want, b.Refused, "bin %d", i)
		all -= b.Requests
	}
	assert.Zero(t, all, "none is lost")
	s.add(time.Date(2261, 1, 1, 0, 0, 0, 0, time.UTC), true)
	assert.LessOrEqual(t, len(s.Bins), maxBins, "the longest log there is")
}

func TestRulesOutput(t *testing.T) {
	log := strings.Repeat(logLine("h1", 0, "GET /a HTTP/1.1", "200"), 3) + logLine("h2", 60, `GET /\xC3\xA9 HTTP/1.1`,
		"200")
	r := runRules(t, `rules:
- {name: client, rate: 1/h, burst: 1}
- {name: by-path, key: path, rate: 1/h, burst: 1, shadow: true, match: {path: /a}}
- {name: host, rate: 1/h, match: {host: a.example}}
`, log, RulesOptions{})
	var out strings.Builder
	require.NoError(t, r.WriteTable(&out, 5))
	assert.Equal(t, `requests              4
refused               2   50.00 %
not HTTP              0
out of order          0
lines skipped         0

from 2023-11-14 22:13:20 UTC to 2023-11-14 22:14:20 UTC (1m0s)

rule      matched   refused     share      keys  keys refused  refused by others
client          4         2   50.00 %         2             1                  0
by-path         3         0    0.00 %         1             0                  2
host            -         -         -         -             -                  -

client: token bucket 1/h burst 1, by ip, for all requests
by-path: token bucket 1/h burst 1, by path, for path /a
by-path: shadow: these are the refusals that it would make; they are not included in all refused
host: cannot be judged from this log: the log does not have the host of a request: name it with --host

client: most refused  requests   refused     share
h1                           3         2   66.67 %
`, out.String())

	var text bytes.Buffer
	require.NoError(t, r.WriteJSON(&text, nil))
	var got map[string]any
	require.NoError(t, json.Unmarshal(text.Bytes(), &got))
	assert.Equal(t, float64(2), got["refused"])
	assert.Equal(t, []any{}, got["rules"].([]any)[2].(map[string]any)["refused_keys"])
}

func TestAKeyThatCannotSteerATerminal(t *testing.T) {
	assert.Equal(t, `"a\x1b[2Jb"`, printable("a\x1b[2Jb"))
	assert.Equal(t, "plain, ü", printable("plain, ü"))
	assert.Len(t, printable(strings.Repeat("x", 1000)), 83)
}

// TestExemptionsOfALog: a replay leaves out the requests that a server exempts. If an exemption needs data that the log
// does not have, a note says so.
func TestExemptionsOfALog(t *testing.T) {
	const rules = `exempt: [{path: /health}, {client: 10.0.0.0/8, header: {X-Probe: "*"}}]
trusted_proxies: 10.0.0.0/8
rules: [{name: a, rate: 1/h, burst: 1, key: global, match: {not: {client: 192.0.2.1}}}]
`
	r := runRules(t, rules, logLine("192.0.2.2", 0, "GET /health HTTP/1.1", "200")+logLine("192.0.2.1", 0,
		"GET / HTTP/1.1", "200")+
		logLine("10.0.0.1", 0, "GET / HTTP/1.1", "200")+logLine("name.example", 0, "GET / HTTP/1.1",
		"200"), RulesOptions{})
	assert.Equal(t, [2]uint64{2, 1}, [2]uint64{r.Rules[0].Matched, r.Rules[0].Refused})
	assert.Equal(t, []string{"requests that are exempt by header:X-Probe are counted: the log does not have it"},
		r.Rules[0].Notes)
}
