package caddylimit_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/caddylimit/internal/testcaddy"
)

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func plans(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func byFile(file, more string) string {
	return `{"limits":[{"name":"plans","rate":"2/h","key":["{http.request.header.User}"],"quotas":{"file":` + quoted(file) + more + `}}]}`
}

// TestAFileOfLimits: keys in the file have the file's limits. The option unknown says whether other keys have the
// limit's own numbers or are refused.
func TestAFileOfLimits(t *testing.T) {
	file := plans(t, "plans.csv", "key,plan\nanna,free\nberta,paid\ncarl,4/h\ndora,unlimited\nemil,0\n192.0.2.1,5/h\n2001:db8::,6/h\n")
	const named = `,"plans":{"free":{"rate":"3/h"},"paid":{"rate":"1/h","burst":7}}`
	c := start(t, byFile(file, named))
	for user, want := range map[string]int{
		"anna": 3, "berta": 7, "carl": 4, "dora": 10, "emil": 0, "fred": 2, "": 2, "::ffff:192.0.2.1": 5, "2001:db8::9": 6, "Anna": 2,
	} {
		assert.Equal(t, want, passed(c, 10, "User", user), user)
	}
	refusing := start(t, strings.Replace(byFile(file, named+`,"unknown":"refuse"`), `"name":"plans"`, `"name":"refusing"`, 1))
	assert.Equal(t, 0, passed(refusing, 1, "User", "fred"))
	assert.Equal(t, 3, passed(refusing, 10, "User", "anna"))
	by := start(t, `{"limits":[{"name":"by","rate":"0","key":["{http.request.header.User}","x"],"quotas":{"file":`+
		quoted(plans(t, "a.JSON", `{"anna":{"rate":"3/h"}}`))+`,"by":"{http.request.header.X}","plans":{"p":{"rate":"1/h"}}}}]}`)
	assert.Equal(t, 3, passed(by, 9, "User", "a", "X", "anna"))
	assert.Equal(t, 3, passed(by, 9, "User", "b", "X", "anna"), "what is looked up is not what has a bucket")
	assert.Equal(t, 0, passed(by, 1, "User", "a", "X", "berta"))
}

// TestSlowAndFastLimitsOfAFile: a file and its plans may have every quota that the zone accepts, also in a store. Other
// quotas fail when the configuration is loaded.
func TestSlowAndFastLimitsOfAFile(t *testing.T) {
	address, _ := startRedis(t)
	for where, store := range map[string]string{"process": "", "store": `"store":"redis://` + address + `",`} {
		limit := func(rate, name, line string) string {
			file := plans(t, "plans.csv", line+"\n")
			return `{` + store + `"limits":[{"name":"` + name + `","rate":"` + rate + `","key":["{http.request.header.User}"],"quotas":{"file":` +
				quoted(file) + `,"plans":{"slow":{"rate":"4/30d"},"fast":{"rate":"1000000/s"}}}}]}`
		}
		for _, rate := range []string{"1000000/s", "2/h", "2/40d", "0", "unlimited"} {
			c := start(t, limit(rate, "slow "+where+strings.ReplaceAll(rate, "/", ""), "anna,3/30d\nberta,slow"))
			assert.Equal(t, 3, passed(c, 9, "User", "anna"), where+rate)
			assert.Equal(t, 4, passed(c, 9, "User", "berta"), where+rate)
		}
		_, err := testcaddy.Provision(t, "weir", limit("2/h", "late "+where, "anna,3/30d\nberta,3/60d"))
		assert.ErrorContains(t, err, "line 2: rate 3/1440h0m0s: ", where)
		_, err = testcaddy.Provision(t, "weir", limit("2/60d", "later "+where, "anna,3/30d"))
		assert.ErrorContains(t, err, "must fill within 1248h0m0s", where)
	}
	_, err := testcaddy.Provision(t, "weir", `{"store":"redis://`+address+`","nodes":1000,"limits":[{"name":"shared","rate":"1000/s","quotas":{"file":`+
		quoted(plans(t, "plans.csv", "192.0.2.1,3/30d\n"))+`}}]}`)
	assert.ErrorContains(t, err, "line 1: rate 3/720h0m0s: a node's share: ")
}

// TestAFileOfLimitsThatChanges: keys soon have the file's new limits, and their used tokens still count.
func TestAFileOfLimitsThatChanges(t *testing.T) {
	file := plans(t, "plans.csv", "anna,3/h\n")
	c := start(t, strings.Replace(byFile(file, `,"every":"1s"`), `"name":"plans"`, `"name":"changing"`, 1))
	assert.Equal(t, 3, passed(c, 9, "User", "anna"))
	require.NoError(t, os.WriteFile(file+"~", []byte("anna,5/h\nberta,1000/h\n"), 0o600))
	require.NoError(t, os.Rename(file+"~", file))
	require.Eventually(t, func() bool { return passed(c, 3, "User", "berta") == 3 }, time.Minute, 10*time.Millisecond)
	assert.Equal(t, 2, passed(c, 9, "User", "anna"))
}

// TestTheLimitOfAHeader: only a trusted proxy can set the limit by a header. A bad value counts as no header.
func TestTheLimitOfAHeader(t *testing.T) {
	user := 0
	for _, unknown := range []string{"default", "refuse"} {
		c := start(t, `{"limits":[{"name":"a","rate":"2/h","key":["{http.request.header.User}"],"quotas":{"header":"x-ratelimit-policy","unknown":"`+unknown+`"}}]}`)
		ask := func(trusted bool, lines ...string) (passed int) {
			user++
			for range 9 {
				r := testcaddy.From("192.0.2.1:1")
				r.Header.Set("User", fmt.Sprint(user))
				r.Header["X-Ratelimit-Policy"] = lines
				if c.DoTrusted(r, trusted).Code == http.StatusOK {
					passed++
				}
			}
			return passed
		}
		own := map[string]int{"default": 2, "refuse": 0}[unknown]
		assert.Equal(t, 4, ask(true, `"a";q=4;w=3600`))
		assert.Equal(t, 4, ask(true, `"b";q=1`, `a;q=4`))
		assert.Equal(t, 0, ask(true, `"a";q=0`))
		assert.Equal(t, own, ask(true))
		assert.Equal(t, own, ask(true, `"b";q=4`))
		assert.Equal(t, own, ask(true, `"a";q=4, "`))
		assert.Equal(t, own, ask(true, `"a";q=4, ("b")`))
		assert.Equal(t, own, ask(false, `"a";q=4;w=3600`))
		assert.Equal(t, own, ask(false, `"`))
	}
}

// TestAHashOfLimits: keys have the limits of a hash in the store, also if their buckets are in the store.
func TestAHashOfLimits(t *testing.T) {
	address, redis := startRedis(t)
	redisDo(t, address, "HSET plans anna free berta 5/h,6 carl unlimited")
	for _, local := range []string{"true", "false"} {
		c := start(t, `{"store":"redis://`+address+`","limits":[{"name":"hash","rate":"2/h","local":`+local+`,"key":["{http.request.header.User}"],
			"quotas":{"hash":"plans","every":"1s","plans":{"free":{"rate":"3/h"}}}}]}`)
		assert.Equal(t, 3, passed(c, 9, "User", "anna"))
		assert.Equal(t, 6, passed(c, 9, "User", "berta"))
		assert.Equal(t, 9, passed(c, 9, "User", "carl"))
		assert.Equal(t, 2, passed(c, 9, "User", "dora"))
		if local == "true" {
			redisDo(t, address, "HSET plans dora 7/h")
			require.Eventually(t, func() bool { return passed(c, 1, "User", "dora") == 1 }, time.Minute, 10*time.Millisecond)
			redisDo(t, address, "HDEL plans dora")
		} else {
			redis.Kill()
			assert.Equal(t, 9, passed(c, 9, "User", "carl"), "the last limits stay")
		}
	}
}

func TestBadQuotas(t *testing.T) {
	good := plans(t, "good.csv", "anna,1/s\n")
	for quotas, want := range map[string]string{
		`{}`:                                                 "quotas: want one of file, hash and header",
		`{"file":"a","header":"b"}`:                          "quotas: want one of file, hash and header",
		`{"header":"b","by":"{x}"}`:                          "by, plan and every need a file or a hash",
		`{"header":"X_Plan"}`:                                `header: "X_Plan": want a name of letters, digits and hyphens`,
		`{"header":"x-forwarded-for"}`:                       "header: x-forwarded-for has another meaning",
		`{"header":"TE"}`:                                    "header: TE is for one connection alone",
		`{"file":"a","item":"b"}`:                            `item "b": it needs a header`,
		`{"file":"a","unknown":"b"}`:                         `unknown "b": want default or refuse`,
		`{"file":"a","max":4294967297}`:                      "max 4294967297: want 1 to 4294967296",
		`{"file":"a","every":"1ms"}`:                         "every 1ms: want 1s to 24h",
		`{"hash":"a"}`:                                       "there is no store",
		`{"file":"/no/such/file"}`:                           "/no/such/file: ",
		`{"file":` + quoted(plans(t, "empty.csv", "")) + `}`: "it has no keys",
		`{"file":` + quoted(plans(t, "bad.csv", "anna,gold\n")) + `}`:  `line 1: "gold"`,
		`{"file":` + quoted(good) + `,"plans":{"a":{}}}`:               `plan "a": neither rate nor burst`,
		`{"file":` + quoted(good) + `,"plans":{"a":{"rate":"x"}}}`:     `plan "a": `,
		`{"file":` + quoted(good) + `,"plans":{"1/s":{"rate":"1/s"}}}`: `plan "1/s": the name is a rate`,
		`{"file":` + quoted(good) + `,"by":"{http.request.x}"}`:        "no placeholder",
		`{"file":` + quoted(good) + `},"quota":"{http.vars.q}"`:        "quota and quotas both set the limit",
		`{"file":` + quoted(good) + `},"algorithm":"fixed-window"`:     "quotas are token buckets",
		`{"file":` + quoted(good) + `},"key":["a","b"]`:                "the key has 2 parts",
	} {
		_, err := testcaddy.Provision(t, "weir", `{"limits":[{"name":"bad","rate":"1/s","quotas":`+quotas+`}]}`)
		assert.ErrorContains(t, err, want, quotas)
	}
}

func redisDo(t *testing.T, address, command string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, command+"\r\n")
	require.NoError(t, err)
	answer := make([]byte, 64)
	n, err := conn.Read(answer)
	require.NoError(t, err)
	require.Equal(t, byte(':'), answer[0], "%s", answer[:n])
}
