package rules

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// compileIn returns the rules of a file next to a plans.csv, or the error.
func compileIn(t *testing.T, plans, text string) ([]*Rule, error) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plans.csv"), []byte(plans), 0o600))
	file, err := rulefile.Parse(filepath.Join(dir, "weir.yaml"), []byte(text))
	require.NoError(t, err)
	ip, err := ClientIP(file)
	require.NoError(t, err)
	return Compile(file, ip)
}

// get returns a request of 192.0.2.1 with header fields.
func get(fields ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://a.example/x", nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	return r
}

// TestTheLimitOfAKey: a request has the limit of its key in the file. From a file with keys of all kinds, a rule reads
// its own kind.
func TestTheLimitOfAKey(t *testing.T) {
	const addresses = "192.0.2.1,6/s\n2001:db8::9,7/s\n"
	const plans = "anna,5/s\nA.Example:80,8/s\nBearer V,9/s\na b,unlimited\nemil,0\n" + addresses
	rate := func(n float64) string { return fmt.Sprintf("token bucket %v/s burst %v", n, n) }
	from6 := get()
	from6.RemoteAddr = "[2001:db8::1]:80"
	cookie := get()
	cookie.AddCookie(&http.Cookie{Name: "id", Value: "anna"})
	for _, c := range []struct {
		rule string
		r    *http.Request
		want string
	}{
		{"key: ip, quota: {file: plans.csv}", get(), rate(6)},
		{"key: ip, quota: {file: plans.csv}", from6, rate(7)}, // the /64 is the customer
		{"key: header:X-Key, quota: {file: plans.csv}", get("X-Key", "anna"), rate(5)},
		{"key: header:X-Key, quota: {file: plans.csv}", get("X-Key", "Anna"), rate(1)},
		{"key: header:X-Key, quota: {file: plans.csv}", get("X-Key", "a b"), "unlimited"},
		{"key: header:X-Key, quota: {file: plans.csv}", get("X-Key", "emil"), "none: every request is refused"},
		{"key: header:X-Key, quota: {file: plans.csv}", get(), rate(6)},
		// The file has a limit for this address. It does not apply to a header with the same text, which a client could
		// write.
		{"key: header:X-Key, quota: {file: plans.csv}", get("X-Key", "192.0.2.1"), rate(1)},
		{"key: header:X-Key or none, quota: {file: plans.csv}", get("X-Key", "192.0.2.1"), rate(6)},
		{"key: header:Authorization, quota: {file: plans.csv}", get("Authorization", "bearer  V"), rate(9)},
		{"key: [ip, host], quota: {file: plans.csv, by: host}", get(), rate(8)},
		{"key: cookie:id, quota: {file: plans.csv}", cookie, rate(5)},
		{"key: ip, quota: {file: plans.csv, by: header:X-Key or none, unknown: refuse}", get(), "none: every request is refused"},
		{"key: ip, quota: {file: plans.csv, by: header:X-Key or none, unknown: refuse}", get("X-Key", "x"), "none: every request is refused"},
		{"key: ip, quota: {file: plans.csv, by: header:X-Key or none, unknown: refuse}", get("X-Key", "anna"), rate(5)},
	} {
		keys := plans
		if c.rule == "key: ip, quota: {file: plans.csv}" {
			keys = addresses
		}
		all, err := compileIn(t, keys, "rules: [{name: a, rate: 1/s, "+c.rule+"}]")
		require.NoError(t, err, c.rule)
		assert.Equal(t, c.want, all[0].LimitOf(c.r), c.rule)
		assert.Equal(t, c.want == "unlimited", all[0].IsUnlimited(c.r))
		assert.Equal(t, strings.Count(keys, "\n"), all[0].Quotas().Len())
	}
}

// TestABadFileOfLimits: if a file of limits has a mistake, there is an error with the line, even if the rule does not
// need this line.
func TestABadFileOfLimits(t *testing.T) {
	for plans, want := range map[string]string{
		"anna,free\n\nberta,gold\n":             `line 3: "gold": want the name of a plan, or a rate such as 10/s, 0 or unlimited`,
		"anna,5/s,21\n":                         "line 1: rate 5/s, burst 21: limit of 21 tokens: want at most 20, the max",
		"anna,1/d,20\nberta,1/365d":             "line 2: rate 1/8760h0m0s: burst of 1 tokens at 1 tokens every 8760h0m0s",
		"anna,free\nanna,free\n":                "line 2: its key occurs twice",
		"192.0.2.1,free\n::ffff:192.0.2.1,free": "line 2: its key occurs twice",
	} {
		_, err := compileIn(t, plans, "rules: [{name: a, rate: 1/s, key: header:X-Key, quota: {file: plans.csv, max: 20, plans: {free: {rate: 2/s}}}}]")
		if assert.ErrorContains(t, err, "rule a: quota: ", plans) {
			assert.ErrorContains(t, err, "plans.csv: "+want)
		}
	}
	for by, keys := range map[string][]string{
		"header:X-Key": {" anna", "anna\t", "an\x00na", "an\x7fna"}, "cookie:id": {"an;na", "an\\na", "anna\u00e9", "\"anna"},
	} {
		for _, key := range keys {
			text := `"` + strings.ReplaceAll(key, `"`, `""`) + "\",5/s\n"
			_, err := compileIn(t, "berta,5/s\n"+text, "rules: [{name: a, rate: 1/s, key: "+by+", quota: {file: plans.csv}}]")
			assert.ErrorContains(t, err, "plans.csv: line 2: a key that no request can have as its "+by, "%q", key)
		}
	}
	_, err := compileIn(t, "192.0.2.1,5/s\nanna,5/s\n", "rules: [{name: a, rate: 1/s, quota: {file: plans.csv}}]")
	assert.ErrorContains(t, err, "plans.csv: line 2: a key that is not an address, and the limits are by ip")
	_, err = compileIn(t, "", "rules: [{name: a, rate: 1/s, quota: {file: none.csv}}]")
	assert.ErrorContains(t, err, "none.csv: no such file or directory")
	_, err = compileIn(t, "anna,10/m\n", "rules: [{name: a, rate: 5/h, key: header:X-Key, algorithm: fixed-window, quota: {file: plans.csv}}]")
	assert.ErrorContains(t, err, "plans.csv: line 1: rate 10/m: all limits of a fixed-window have one period")
}

// deciding returns a function that sends n equal requests and returns how many were admitted.
func deciding(t *testing.T, rule *Rule) func(r *http.Request, n int) int {
	t.Helper()
	now := time.Unix(1e9, 0)
	limiter, err := rule.NewLimiter(engine.ClockFunc(func() time.Time { return now }))
	require.NoError(t, err)
	t.Cleanup(func() { _ = limiter.Close() })
	l := rule.Limit()
	l.Limiter = limiter
	m, err := httplimit.New([]httplimit.Limit{l})
	require.NoError(t, err)
	return func(r *http.Request, n int) (admitted int) {
		for range n {
			if result := m.Decide(r); result.Allowed() {
				admitted++
			}
		}
		return admitted
	}
}

// TestManyTiers: if there are more tiers than a limiter can have, a request still has the limit of its tier. If a key
// changes its tier, tokens that it has used still count.
func TestManyTiers(t *testing.T) {
	for _, algorithm := range []string{"token-bucket", "fixed-window", "sliding-window", "sliding-log", "batch-refill"} {
		var text strings.Builder
		fmt.Fprintf(&text, "rules: [{name: a, rate: 2/h, algorithm: %s, max_keys: 100, tiers: {header: X-Plan, values: {none: {rate: 0}, all: {rate: unlimited}", algorithm)
		for i := range 100 {
			if algorithm == "batch-refill" {
				fmt.Fprintf(&text, ", v%d: {burst: %d}", i, 3+i)
				continue
			}
			fmt.Fprintf(&text, ", v%d: {rate: %d/h}", i, 3+i)
		}
		all, err := compileIn(t, "", text.String()+"}}}]")
		require.NoError(t, err, algorithm)
		admitted := deciding(t, all[0])
		from := func(addr, plan string) *http.Request {
			r := get("X-Plan", plan)
			r.RemoteAddr = addr + ":1"
			return r
		}
		assert.Equal(t, 102, admitted(from("192.0.2.1", "v99"), 200), algorithm)
		assert.Equal(t, 0, admitted(from("192.0.2.1", "v98"), 1), algorithm)
		assert.Equal(t, 0, admitted(from("192.0.2.1", ""), 1), algorithm)
		assert.Equal(t, 3, admitted(from("192.0.2.2", "v0"), 9), algorithm)
		assert.Equal(t, 10, admitted(from("192.0.2.2", "v10"), 99), algorithm)
		assert.Equal(t, 2, admitted(from("192.0.2.3", "else"), 9), algorithm)
		assert.Equal(t, 0, admitted(from("192.0.2.4", "none"), 9), algorithm)
		assert.Equal(t, 9, admitted(from("192.0.2.3", "all"), 9), algorithm)
	}
}

// TestFilesOfWindows: for fixed windows and sliding logs, a file gives limits up to the rule's max, in the rule's
// period.
func TestFilesOfWindows(t *testing.T) {
	for _, algorithm := range []string{"fixed-window", "fixed-window, aligned: true", "sliding-window", "sliding-log"} {
		all, err := compileIn(t, "anna,50/h\nberta,3/h\n",
			"rules: [{name: a, rate: 5/h, max_keys: 100, key: header:X-Key, quota: {file: plans.csv, max: 50}, algorithm: "+algorithm+"}]")
		require.NoError(t, err, algorithm)
		admitted := deciding(t, all[0])
		assert.Equal(t, 50, admitted(get("X-Key", "anna"), 99), algorithm)
		assert.Equal(t, 3, admitted(get("X-Key", "berta"), 99), algorithm)
		assert.Equal(t, 5, admitted(get("X-Key", "carl"), 99), algorithm)
	}
	all, err := compileIn(t, "anna,50/month\n",
		"rules: [{name: a, rate: 5/month, algorithm: fixed-window, max_keys: 100, key: header:X-Key, quota: {file: plans.csv}}]")
	require.NoError(t, err)
	assert.Equal(t, 50, deciding(t, all[0])(get("X-Key", "anna"), 99))
}

// TestOnlyTheFile: with the rule's own rate 0, only keys in the file pass.
func TestOnlyTheFile(t *testing.T) {
	all, err := compileIn(t, "anna,free\n", "rules: [{name: a, rate: 0, key: header:X-Key, quota: {file: plans.csv, plans: {free: {rate: 3/h}}}}]")
	require.NoError(t, err)
	admitted := deciding(t, all[0])
	assert.Equal(t, 3, admitted(get("X-Key", "anna"), 9))
	assert.Equal(t, 0, admitted(get("X-Key", "berta"), 9))
}

func behind(addr string, lines ...string) *http.Request {
	r := get()
	r.RemoteAddr = addr
	r.Header["X-Ratelimit-Policy"] = lines
	return r
}

// TestTheLimitOfAHeader: the limit is in the item of the header with the rule's name. The header counts only if a
// trusted proxy has sent it.
func TestTheLimitOfAHeader(t *testing.T) {
	const proxy, client = "10.0.0.1:1", "192.0.2.1:1"
	const own, refused = "token bucket 1/s burst 1", "none: every request is refused"
	for _, c := range []struct {
		quota, addr string
		lines       []string
		want, err   string
	}{
		{"", proxy, []string{`"a";q=60;w=60`}, "token bucket 60/m burst 60", ""},
		{"", proxy, []string{`a;q=60;w=60`}, "token bucket 60/m burst 60", ""},
		{"", proxy, []string{`"b";q=1;w=1, "a";q=60;w=60;qu="requests"`}, "token bucket 60/m burst 60", ""},
		{"", proxy, []string{`"b";q=1;w=1`, `"a";q=60`}, "token bucket 60/s burst 60", ""},
		{", item: all of it", proxy, []string{`"all of it";q=60, "a";q=3`}, "token bucket 60/s burst 60", ""},
		{"", proxy, []string{`"a";q=0;w=1`}, refused, ""},
		{"", proxy, nil, own, ""},
		{"", proxy, []string{""}, own, ""},
		{"", proxy, []string{`"b";q=60`}, own, ""},
		{", unknown: refuse", proxy, []string{`"b";q=60`}, refused, ""},
		{", unknown: refuse", proxy, nil, refused, ""},
		{", unknown: refuse", proxy, []string{`"a";q=60`}, "token bucket 60/s burst 60", ""},
		// A client's header is ignored.
		{"", client, []string{`"a";q=60;w=60`}, own, ""},
		{"", client, []string{`"a";q=60;w=60, "`}, own, ""},
		{", unknown: refuse", client, []string{`"a";q=60`}, refused, ""},
		{"", "", []string{`"a";q=60;w=60`}, own, ""},
		// If the value is not a limit, there is an error, and the request has no limit from the header.
		{"", proxy, []string{`"a";q=60, "`}, own, "the header X-Ratelimit-Policy: "},
		{"", proxy, []string{`("a" "b");q=60`}, own, "a list in the list"},
		{"", proxy, []string{`"a";q=60` + strings.Repeat(`, b`, 64)}, own, "65 items: want at most 64"},
		{"", proxy, []string{`"a";q=60;pk=%"\"` + strings.Repeat(`, b`, 64)}, own, "65 items: want at most 64"},
		{"", proxy, []string{`"a";q=60;pk="(,,"` + strings.Repeat(`, b`, 63)}, "token bucket 60/s burst 60", ""},
		{"", proxy, []string{`5;q=60`}, own, "an item of the type int64"},
		{"", proxy, []string{`"a";w=60`}, own, "no q"},
		{"", proxy, []string{`"a";q=1000001`}, own, "want at most 1000000, the max"},
		{"", proxy, []string{`"a";q=60;qu="content-bytes"`}, own, `want "requests"`},
		{"", proxy, []string{`"a";q=60, "a";q=61`}, own, "two items"},
		{"", proxy, []string{`"a";q=1, ` + strings.Repeat(`"b";q=1, `, 500) + `"c";q=1`}, own, "bytes: want at most 4096"},
		{", unknown: refuse", proxy, []string{`"a";q=6x`}, refused, "the header X-Ratelimit-Policy: "},
	} {
		all, err := compileIn(t, "", "trusted_proxies: 10.0.0.0/8\nrules: [{name: a, rate: 1/s, quota: {header: X-RateLimit-Policy"+c.quota+"}}]")
		require.NoError(t, err)
		r := behind(c.addr, c.lines...)
		assert.Equal(t, c.want, all[0].LimitOf(r), "%s %s %q", c.quota, c.addr, c.lines)
		_, err = all[0].Limit().Quota(r)
		if c.err == "" {
			assert.NoError(t, err, "%q", c.lines)
		} else {
			assert.ErrorContains(t, err, c.err, "%q", c.lines)
		}
	}
}

// TestHeadersOfWindows: a limit in a header must have the period of the rule. Otherwise there is an error, and the
// rule's own limit applies.
func TestHeadersOfWindows(t *testing.T) {
	for _, algorithm := range []string{"fixed-window", "sliding-window", "sliding-log"} {
		all, err := compileIn(t, "", "trusted_proxies: 10.0.0.0/8\nrules: [{name: a, rate: 5/h, max_keys: 100, key: header:X-Key, "+
			"quota: {header: X-RateLimit-Policy, max: 50}, algorithm: "+algorithm+"}]")
		require.NoError(t, err, algorithm)
		admitted := deciding(t, all[0])
		ask := func(key, line string, n int) int {
			r := behind("10.0.0.1:1", line)
			r.Header.Set("X-Key", key)
			return admitted(r, n)
		}
		assert.Equal(t, 50, ask("anna", `"a";q=50;w=3600`, 99), algorithm)
		assert.Equal(t, 0, ask("anna", `"a";q=49;w=3600`, 1), algorithm)
		assert.Equal(t, 5, ask("berta", `"a";q=50;w=60`, 99), algorithm)
		assert.Equal(t, 5, ask("carl", `"a";q=51;w=3600`, 99), algorithm)
		assert.Equal(t, 3, ask("dora", `"a";q=3`, 99), algorithm)
	}
}

// TestAHeaderThatNobodyTells: if requests are completely trusted, as with [Told], the header of a proxy counts.
func TestAHeaderThatNobodyTells(t *testing.T) {
	file, err := rulefile.Parse("weir.yaml", []byte("trusted_proxies: 10.0.0.0/8\nrules: [{name: a, rate: 1/s, quota: {header: X-RateLimit-Policy}}]"))
	require.NoError(t, err)
	ip, err := PeerIP(file)
	require.NoError(t, err)
	all, err := Compile(file, Trusted{ip})
	require.NoError(t, err)
	assert.Equal(t, "token bucket 60/s burst 60", all[0].LimitOf(behind("192.0.2.1:1", `"a";q=60`)))
}

func hashed(t *testing.T, more string) *Rule {
	t.Helper()
	all, err := compileIn(t, "", "store: redis://127.0.0.1:1\nrules: [{name: a, rate: 1/s, store: false, key: header:X-Key, "+
		"quota: {hash: plans, plans: {free: {rate: 2/s}}"+more+"}}]")
	require.NoError(t, err)
	return all[0]
}

// TestTheLimitsOfAHash: a key means the same in a hash as in a file. If a key cannot be read, the error names it.
func TestTheLimitsOfAHash(t *testing.T) {
	rule := hashed(t, "")
	assert.Equal(t, "token bucket 1/s burst 1", rule.LimitOf(get("X-Key", "anna")), "it was not read")
	assert.Nil(t, rule.Quotas())
	fields := []string{"anna", "free", "A b", "5/s,9", "anna", "3/s"}
	hash := func(_ context.Context, name string, yield func(field, value string) error) error {
		assert.Equal(t, "plans", name)
		for i := 0; i < len(fields); i += 2 {
			if err := yield(fields[i], fields[i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	table, err := rule.ReadHash(t.Context(), hash)
	require.NoError(t, err)
	assert.Same(t, table.Table(), rule.Quotas())
	assert.Equal(t, "token bucket 3/s burst 3", rule.LimitOf(get("X-Key", "anna")))
	assert.Equal(t, "token bucket 5/s burst 9", rule.LimitOf(get("X-Key", "A b")))
	assert.Equal(t, "token bucket 1/s burst 1", rule.LimitOf(get("X-Key", "a b")))
	for want, bad := range map[string][]string{
		`rule a: quota: hash plans: field 1: "gold": want the name of a plan`:                    {"anna", "gold"},
		"rule a: quota: hash plans: field 1: a key that no request can have as its header:X-Key": {"anna\n", "free"},
		"rule a: quota: hash plans: it has no keys":                                              nil,
	} {
		fields = bad
		_, err := hashed(t, "").ReadHash(t.Context(), hash)
		assert.ErrorContains(t, err, want)
	}
	fields = []string{"anna", "free"}
	refusing := hashed(t, ", unknown: refuse")
	_, err = refusing.ReadHash(t.Context(), hash)
	require.NoError(t, err)
	assert.Equal(t, "none: every request is refused", refusing.LimitOf(get("X-Key", "berta")))
	all, err := compileIn(t, "", "rules: [{name: a, rate: 1/s}]")
	require.NoError(t, err)
	table, err = all[0].ReadHash(t.Context(), hash)
	require.NoError(t, err)
	assert.Nil(t, table)
}
