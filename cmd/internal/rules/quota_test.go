package rules

import (
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

// compileIn returns the rules of a file in a folder in which plans.csv is, or why there are none.
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

// get is a request of 192.0.2.1 with header fields.
func get(fields ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://a.example/x", nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	return r
}

// The limit of a request is that of its key in the file, of all kinds of keys, and of that kind only which the rule
// reads.
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
		{"key: ip, quota: {file: plans.csv}", from6, rate(7)}, // the customer has the /64
		{"key: header:X-Key, quota: {file: plans.csv}", get("X-Key", "anna"), rate(5)},
		{"key: header:X-Key, quota: {file: plans.csv}", get("X-Key", "Anna"), rate(1)},
		{"key: header:X-Key, quota: {file: plans.csv}", get("X-Key", "a b"), "unlimited"},
		{"key: header:X-Key, quota: {file: plans.csv}", get("X-Key", "emil"), "none: every request is refused"},
		{"key: header:X-Key, quota: {file: plans.csv}", get(), rate(6)},
		// An address in the file is no header: a client could write it there.
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

// What is wrong with the file of limits is an error with its line, whatever the rule wants.
func TestABadFileOfLimits(t *testing.T) {
	for plans, want := range map[string]string{
		"anna,free\n\nberta,gold\n":             `line 3: "gold": want the name of a plan, or a rate such as 10/s, 0 or unlimited`,
		"anna,5/s,21\n":                         "line 1: rate 5/s, burst 21: limit of 21 tokens: want at most 20, the max",
		"anna,1/d,20\nberta,1/365d":             "line 2: rate 1/8760h0m0s: burst of 1 tokens at 1 tokens every 8760h0m0s",
		"anna,free\nanna,free\n":                "line 2: its key is there twice",
		"192.0.2.1,free\n::ffff:192.0.2.1,free": "line 2: its key is there twice",
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
	assert.ErrorContains(t, err, "plans.csv: line 2: a key that is no address, and the limits are by ip")
	_, err = compileIn(t, "", "rules: [{name: a, rate: 1/s, quota: {file: none.csv}}]")
	assert.ErrorContains(t, err, "none.csv: no such file or directory")
	_, err = compileIn(t, "anna,10/m\n", "rules: [{name: a, rate: 5/h, key: header:X-Key, algorithm: fixed-window, quota: {file: plans.csv}}]")
	assert.ErrorContains(t, err, "plans.csv: line 1: rate 10/m: a tier of a fixed-window has the limit's period")
}

// deciding returns the middleware of a rule, and how many of n requests it admits.
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

// A rule may have more tiers than a limiter: each request is under its own, and a key keeps what it has taken.
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

// Windows and logs of a file have the rule's period and a limit of their own, up to the max.
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

// Only the keys of a file pass, where the rule itself has a rate of 0.
func TestOnlyTheFile(t *testing.T) {
	all, err := compileIn(t, "anna,free\n", "rules: [{name: a, rate: 0, key: header:X-Key, quota: {file: plans.csv, plans: {free: {rate: 3/h}}}}]")
	require.NoError(t, err)
	admitted := deciding(t, all[0])
	assert.Equal(t, 3, admitted(get("X-Key", "anna"), 9))
	assert.Equal(t, 0, admitted(get("X-Key", "berta"), 9))
}
