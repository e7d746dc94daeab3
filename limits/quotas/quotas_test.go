package quotas_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testrace"
	"github.com/weir-go/weir/limits/quotas"
	"github.com/weir-go/weir/limits/spec"
)

var free, paid = engine.TokenBucket(engine.PerSecond(1), 1), engine.TokenBucket(engine.PerSecond(100), 200)

func reader(t testing.TB) quotas.Reader {
	l := spec.Limit{Numbers: spec.Numbers{Rate: spec.Of(engine.PerSecond(10))}, Quota: 1000}
	numbers, err := l.Quotas()
	require.NoError(t, err)
	t.Cleanup(numbers.Close)
	return quotas.Reader{Plans: map[string]engine.Policy{"free": free, "paid": paid}, Policy: numbers.Policy}
}

func has(t *testing.T, table *quotas.Table, want map[string]engine.Policy) {
	t.Helper()
	assert.Equal(t, len(want), table.Len())
	for key, p := range want {
		got, ok := table.Of(key)
		assert.True(t, ok, key)
		assert.Equal(t, p, got, key)
	}
	_, ok := table.Of("nobody")
	assert.False(t, ok)
}

var some = map[string]engine.Policy{
	"anna": free, "berta": paid, "carl, the \"second\"": engine.TokenBucket(engine.Per(9, 60e9), 4), "dora": engine.Unlimited(),
	"emil": engine.Blocked(), "fred": engine.TokenBucket(engine.PerSecond(10), 3), "#gerd": free,
}

func TestCSV(t *testing.T) {
	const text = "# plans\nanna,free\nberta,paid\n\n\"carl, the \"\"second\"\"\",9/m,4\ndora,unlimited\nemil,0,\nfred,,3\n\"#gerd\",free\n"
	for _, heading := range []string{"", "key,plan\n", "key,rate,burst\n", "\ufeffkey,plan\r\n"} {
		table, err := reader(t).CSV([]byte(heading + text))
		require.NoError(t, err, heading)
		has(t, table, some)
		assert.Equal(t, 6, table.Policies())
	}
}

// TestNoKeys: File returns an error for a file without keys, because the file may have been truncated.
func TestNoKeys(t *testing.T) {
	for _, text := range []string{"", "\n\n", "key,plan\n", "# nobody\n", "\ufeff"} {
		_, err := reader(t).CSV([]byte(text))
		assert.ErrorContains(t, err, "it has no keys: want at least one", "%q", text)
	}
	_, err := reader(t).JSON([]byte("{}"))
	assert.ErrorContains(t, err, "it has no keys")
	_, err = reader(t).Pairs(func(func(key, limit string) error) error { return nil })
	assert.ErrorContains(t, err, "it has no keys")
}

func TestJSON(t *testing.T) {
	table, err := reader(t).JSON([]byte(`{"anna": "free", "berta": "paid", "carl, the \"second\"": {"rate": "9/m", "burst": 4},
		"dora": "unlimited", "emil": {"rate": "0"}, "fred": {"burst": 3}, "#gerd": "free"}`))
	require.NoError(t, err)
	has(t, table, some)
}

func pairs(texts ...string) func(func(key, limit string) error) error {
	return func(yield func(key, limit string) error) error {
		for i := 0; i < len(texts); i += 2 {
			if err := yield(texts[i], texts[i+1]); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestPairs: Pairs accepts the same texts as File. If a key comes twice, however, its last limit applies.
func TestPairs(t *testing.T) {
	table, err := reader(t).Pairs(pairs("anna", "paid", "berta", "paid", `carl, the "second"`, "9/m,4", "dora", "unlimited", "emil", "0",
		"fred", ",3", "#gerd", "free", "anna", "free", "berta", "paid"))
	require.NoError(t, err)
	has(t, table, some)
	for limit, want := range map[string]string{
		"gold": `"gold": want the name of a plan`, "": "no rate: neither rate nor burst", "1/s,1001": "want at most 1000, the max",
		"free,3": "a plan has its own burst", "1/s,2,3": `burst "2,3": want a whole number`,
	} {
		_, err := reader(t).Pairs(pairs("a", "free", "secret", limit))
		if assert.ErrorContains(t, err, want) {
			assert.NotContains(t, err.Error(), "secret")
		}
	}
	_, err = reader(t).Pairs(pairs("a", "free", "a", "free", "secret", "gold"))
	assert.ErrorContains(t, err, `field 3: "gold"`)
	_, err = reader(t).Pairs(pairs("a", "free", "", "free"))
	assert.ErrorContains(t, err, "field 2: a key of 0 bytes")
	lost := errors.New("lost")
	_, err = reader(t).Pairs(func(yield func(key, limit string) error) error {
		require.NoError(t, yield("anna", "free"))
		return lost
	})
	assert.ErrorIs(t, err, lost)
}

// TestALongLimit: an error does not quote a long text in full. A rate with too many digits is an error, too.
func TestALongLimit(t *testing.T) {
	testrace.OneGoroutine(t)
	for name, text := range map[string]string{
		"text": strings.Repeat("x", 1<<20), "rate": strings.Repeat("0", 1<<20) + "1/s", "just": strings.Repeat("x", 256),
		"burst": "1/s," + strings.Repeat("0", 1<<20) + "7", "plan": "free," + strings.Repeat("7", 1<<20), "bytes": strings.Repeat("\xff", 1<<20),
	} {
		_, inHash := reader(t).Pairs(pairs("secret", text))
		_, inCSV := reader(t).CSV([]byte("secret," + text))
		value, err := json.Marshal(text)
		require.NoError(t, err)
		_, inJSON := reader(t).JSON([]byte(`{"secret": ` + string(value) + `}`))
		for _, err := range []error{inHash, inCSV, inJSON} {
			if assert.Error(t, err, name) {
				assert.Less(t, len(err.Error()), 400, name)
			}
		}
		assert.ErrorContains(t, inHash, "field 1: ", name)
	}
	_, err := reader(t).Pairs(pairs("a", strings.Repeat("0", 253)+"1/s"))
	assert.NoError(t, err)
	_, err = reader(t).Pairs(pairs("a", strings.Repeat("0", 254)+"1/s"))
	assert.ErrorContains(t, err, `0" and so on, 257 bytes: want at most 256`)
	in := reader(t)
	plan := strings.Repeat("p", 300)
	in.Plans[plan] = paid
	table, err := in.Pairs(pairs("a", plan))
	require.NoError(t, err)
	has(t, table, map[string]engine.Policy{"a": paid})
}

// TestBadCSV: the error for a bad file names the line and the wrong value, but no key.
func TestBadCSV(t *testing.T) {
	for text, want := range map[string]string{
		"a,free\nsecret,gold\n":             `line 2: "gold": want the name of a plan, or a rate such as 10/s, 0 or unlimited`,
		"a,free\n\n# b\nsecret\n":           "line 4: 1 fields: want key,plan or key,rate or key,rate,burst",
		"secret,1/s,2,3":                    "line 1: 4 fields: want key,plan or key,rate or key,rate,burst",
		"secret,1/s,x":                      `line 1: burst "x": want a whole number from 1 to 4294967296`,
		"secret,free,3":                     `line 1: plan "free" and burst "3": a plan has its own burst: leave this one out`,
		"secret,1/s,1001":                   "line 1: rate 1/s, burst 1001: limit of 1001 tokens: want at most 1000, the max",
		"secret,0,1":                        "line 1: rate 0, burst 1: burst 1: a rate of 0 has none: leave it out",
		"secret,,":                          "line 1: no rate: neither rate nor burst",
		"secret,1e-9/d":                     `line 1: "1e-9/d": want the name of a plan, or a rate such as 10/s, 0 or unlimited`,
		",free":                             "line 1: a key of 0 bytes: want 1 to 4096",
		strings.Repeat("a", 4097) + ",free": "line 1: a key of 4097 bytes: want 1 to 4096",
		"a,free\nsecret,paid\nb,free\n\nsecret,free": "line 5: its key occurs twice",
		"a,free\n\"secret,free\n":                    "line 2, column 14: extraneous or missing \" in quoted-field",
		"a,free\nkey,plan":                           `line 2: "plan": want the name of a plan`,
	} {
		_, err := reader(t).CSV([]byte(text))
		if assert.ErrorContains(t, err, want, text) {
			assert.NotContains(t, err.Error(), "secret")
		}
	}
}

func TestBadJSON(t *testing.T) {
	for text, want := range map[string]string{
		"":                                              "line 1: the file ends in the middle",
		"\n[]":                                          `line 2: want an object, such as {"key": "plan"}`,
		"{\n\"secret\": \"gold\"}":                      `line 2: "gold": want the name of a plan`,
		"{\n\n\"secret\": 5}":                           `line 3: 5: want the name of a plan, a rate such as "10/s", or {"rate": "10/s", "burst": 20}`,
		`{"secret": null}`:                              `line 1: null: want`,
		`{"secret": ""}`:                                `line 1: "": want`,
		`{"secret": {}}`:                                "line 1: no rate: neither rate nor burst",
		`{"secret": {"burst": 0}}`:                      `line 1: burst "0": want a whole number`,
		`{"secret": {"limit": 5}}`:                      `line 1: {"limit": 5}: want`,
		`{"a": {"RATE": "9/s"}}`:                        `line 1: {"RATE": "9/s"}: want`,
		`{"a": {"rate": "1/s", "RATE": "9/s"}}`:         `line 1: {"rate": "1/s", "RATE": "9/s"}: want`,
		`{"a": {"rate": "1/s", "rate": "9/s"}}`:         `line 1: {"rate": "1/s", "rate": "9/s"}: want`,
		`{"a": {"rate": "1/s"}, "b": [{"rate"]}`:        "line 1: ",
		`{"secret": {"rate": "free"}}`:                  `line 1: rate "free": this is the name of a plan: write only the name, without an object`,
		"{\"secret\": \"free\",\n\"secret\": \"free\"}": "line 2: its key occurs twice",
		"{\"a\": \"free\"\n \"secret\": \"free\"}":      "line 2: invalid character '\"'",
		`{"a": "free"`:                                  "line 1: the file ends in the middle",
		`{"a": "free"} {}`:                              "line 1: text after the object",
	} {
		_, err := reader(t).JSON([]byte(text))
		if assert.ErrorContains(t, err, want, text) {
			assert.NotContains(t, err.Error(), "secret")
		}
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.csv": "anna,free", "b.JSON": `{"anna": "free"}`, "c": "anna,free\n"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		table, err := reader(t).File(path)
		require.NoError(t, err, name)
		_, ok := table.Of("anna")
		assert.True(t, ok, name)
	}
	_, err := reader(t).File(dir)
	require.ErrorContains(t, err, ": want a regular file, got d")
	_, err = reader(t).File(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestManyKeys: a table of any size finds the keys that were added, and no others.
func TestManyKeys(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 1000, 30_000} {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "key-%d,%d/s\n", i, 1+i%1000)
		}
		table, err := reader(t).CSV([]byte(text.String()))
		require.NoError(t, err)
		require.Equal(t, n, table.Len())
		assert.Equal(t, min(n, 1000), table.Policies())
		for i := range n {
			p, ok := table.Of(fmt.Sprintf("key-%d", i))
			require.True(t, ok)
			require.Equal(t, uint64(1+i%1000), p.Limit())
			_, ok = table.Of(fmt.Sprintf("key-%d", n+i))
			require.False(t, ok)
		}
	}
}

// TestMemory checks the figures in docs/configuration.md.
func TestMemory(t *testing.T) {
	testrace.OneGoroutine(t)
	require.LessOrEqual(t, unsafe.Sizeof(engine.Policy{}), uintptr(56)) // 48 on systems with 32-bit pointers
	const keys = 30_000
	for kind, most := range map[string]float64{"free": 17, "%d/m": 73} {
		values := map[string]string{}
		for i := range keys {
			value := kind
			if strings.Contains(kind, "%") {
				value = fmt.Sprintf("%d.%05d/m", 1+i%999, i)
			}
			values[fmt.Sprintf("a-key-as-long-as-they-are-%d", i)] = value
		}
		text, err := json.Marshal(values)
		require.NoError(t, err)
		in := reader(t)
		var tables [16]*quotas.Table // so that memory that other code frees meanwhile hardly matters
		before := heap()
		for i := range tables {
			tables[i], err = in.JSON(text)
			require.NoError(t, err)
		}
		used := (float64(heap()) - float64(before)) / float64(len(tables)) / keys
		assert.Less(t, used, most, kind)
		assert.InDelta(t, float64(tables[0].Bytes())/keys, used, 1, kind) // the allocator rounds sizes up
		runtime.KeepAlive(text)
		runtime.KeepAlive(tables)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkOf(b *testing.B) {
	const keys = 1_000_000
	var text strings.Builder
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("a-key-as-long-as-they-are-%d", i)
		fmt.Fprintf(&text, "%s,free\n", names[i])
	}
	table, err := reader(b).CSV([]byte(text.String()))
	require.NoError(b, err)
	b.ReportAllocs()
	for i := 0; b.Loop(); i = (i + 7919) % keys {
		if _, ok := table.Of(names[i]); !ok {
			b.Fatal(names[i])
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, value := range []string{"free", "numbers"} {
		b.Run(value, func(b *testing.B) {
			const keys = 1_000_000
			var text strings.Builder
			for i := range keys {
				limit := value
				if value == "numbers" {
					limit = fmt.Sprintf("%d.%06d/m", 1+i%999, i)
				}
				fmt.Fprintf(&text, "a-key-as-long-as-they-are-%d,%s\n", i, limit)
			}
			in := reader(b)
			for b.Loop() {
				if _, err := in.CSV([]byte(text.String())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
