package quotas_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/quotas"
	"github.com/weir-go/weir/limits/spec"
)

type params map[string]any

func item(value any, p params) quotas.Item {
	return quotas.Item{Value: value, Param: func(name string) (any, bool) {
		v, ok := p[name]
		return v, ok
	}}
}

type token string

func read(f *quotas.Field, items ...quotas.Item) (engine.Policy, bool, error) {
	return readLines(f, []string{"field"}, func([]string) ([]quotas.Item, error) { return items, nil })
}

func readLines(f *quotas.Field, lines []string, parse func([]string) ([]quotas.Item, error)) (engine.Policy, bool, error) {
	return quotas.Read(f, lines, parse, func(i quotas.Item) quotas.Item { return i })
}

// TestField: the limit comes from the item whose value is the Name of the Field.
func TestField(t *testing.T) {
	five := uint64(5)
	bucket := spec.Limit{Numbers: spec.Numbers{Rate: spec.Of(engine.Per(60, time.Minute)), Burst: &five}, Quota: 1000}
	costly := bucket
	costly.Cost = 3
	window := spec.Limit{Numbers: spec.Numbers{Rate: spec.Of(engine.Per(60, time.Minute))}, Algorithm: engine.AlgorithmSlidingWindow, Quota: 1000}
	month, err := spec.ParseRate("60/month")
	require.NoError(t, err)
	calendar := spec.Limit{Numbers: spec.Numbers{Rate: month}, Algorithm: engine.AlgorithmFixedWindow, Quota: 1000}
	for name, c := range map[string]struct {
		of   spec.Limit
		p    params
		want engine.Policy
	}{
		"q and w":          {bucket, params{"q": int64(7), "w": int64(10)}, engine.TokenBucket(engine.Per(7, 10*time.Second), 7)},
		"q alone":          {bucket, params{"q": int64(7)}, engine.TokenBucket(engine.Per(7, time.Minute), 7)},
		"q of 0":           {bucket, params{"q": int64(0), "w": int64(10)}, engine.Blocked()},
		"all tokens":       {bucket, params{"q": int64(1000), "w": int64(1)}, engine.TokenBucket(engine.Per(1000, time.Second), 1000)},
		"with a unit":      {bucket, params{"q": int64(7), "qu": "requests", "pk": []byte("a")}, engine.TokenBucket(engine.Per(7, time.Minute), 7)},
		"a window":         {window, params{"q": int64(7), "w": int64(60)}, engine.SlidingWindow(7, time.Minute)},
		"a window without": {window, params{"q": int64(7)}, engine.SlidingWindow(7, time.Minute)},
		"below the cost":   {costly, params{"q": int64(2)}, engine.TokenBucket(engine.Per(2, time.Minute), 2)},
		"a month":          {calendar, params{"q": int64(7)}, engine.CalendarWindow(7, engine.Month, time.UTC)},
	} {
		for _, value := range []any{"a", token("a")} {
			p, ok, err := read(&quotas.Field{Limit: c.of, Name: "a"}, item("b", params{"q": int64(1)}), item(value, c.p))
			require.NoError(t, err, name)
			assert.True(t, ok, name)
			assert.Equal(t, c.want, p, name)
		}
	}
	_, ok, err := read(&quotas.Field{Limit: bucket, Name: "a"}, item("b", params{"q": "bad"}), item("A", params{"q": int64(1)}))
	assert.NoError(t, err)
	assert.False(t, ok)
	_, ok, err = read(&quotas.Field{Limit: bucket, Name: "a", Unit: "tokens"}, item("a", params{"q": int64(7), "qu": "tokens"}))
	assert.NoError(t, err)
	assert.True(t, ok)
}

// TestBadField: Read returns an error for a value that cannot be a limit.
func TestBadField(t *testing.T) {
	bucket := spec.Limit{Numbers: spec.Numbers{Rate: spec.Of(engine.Per(60, time.Minute))}, Quota: 1000, Cost: 3}
	window := bucket
	window.Algorithm = engine.AlgorithmFixedWindow
	blocked := bucket
	blocked.Rate = spec.Blocked
	for want, c := range map[string]struct {
		of spec.Limit
		p  params
	}{
		`item "a": no q, the number of tokens`:                      {bucket, params{"w": int64(10)}},
		`item "a": q=7.5: want a whole number from 0 to 4294967296`: {bucket, params{"q": 7.5}},
		`item "a": q=-1: want`:                                      {bucket, params{"q": int64(-1)}},
		`item "a": q=4294967297: want`:                              {bucket, params{"q": int64(1<<32 + 1)}},
		`item "a": w=0: want a whole number from 1 to 31536000`:     {bucket, params{"q": int64(7), "w": int64(0)}},
		`item "a": w=true: want`:                                    {bucket, params{"q": int64(7), "w": true}},
		`item "a": qu="content-bytes": want "requests"`:             {bucket, params{"q": int64(7), "qu": "content-bytes"}},
		`item "a": limit of 1001 tokens: want at most 1000`:         {bucket, params{"q": int64(1001)}},
		`item "a": all limits of a fixed-window have one period`:    {window, params{"q": int64(7), "w": int64(10)}},
		`item "a": no w, and a rate of 0 has no time`:               {blocked, params{"q": int64(7)}},
	} {
		p, ok, err := read(&quotas.Field{Limit: c.of, Name: "a"}, item("a", c.p))
		assert.ErrorContains(t, err, want)
		assert.False(t, ok)
		assert.Equal(t, engine.Policy{}, p, want)
	}
	f := &quotas.Field{Limit: bucket, Name: "a"}
	_, _, err := read(f, item("a", params{"q": int64(7)}), item(token("a"), params{"q": int64(900)}))
	assert.ErrorContains(t, err, `two items "a": want one`)
	_, _, err = read(f, item(int64(5), nil))
	assert.ErrorContains(t, err, "an item of the type int64: want a text")
	parsed := 0
	parse := func([]string) ([]quotas.Item, error) { parsed++; return nil, errors.New("unreadable") }
	_, _, err = readLines(f, []string{strings.Repeat("a", 4000), strings.Repeat("a", 96)}, parse)
	assert.EqualError(t, err, "unreadable")
	_, _, err = readLines(f, []string{strings.Repeat("a", 4000), strings.Repeat("a", 97)}, parse)
	assert.ErrorContains(t, err, "4097 bytes: want at most 4096")
	assert.Equal(t, 1, parsed)
	_, ok, err := readLines(f, nil, parse)
	assert.NoError(t, err)
	assert.False(t, ok)
}

// TestALongField: Read does not parse a field that would take long.
func TestALongField(t *testing.T) {
	f := &quotas.Field{Name: "a"}
	sixty := strings.Repeat("a,", 60)
	for _, c := range []struct {
		want  string // "" if the field is parsed
		lines []string
	}{
		{"", []string{sixty, "b", "c", "d"}},
		{"65 items: want at most 64", []string{sixty, "b", "c", "d", "e"}},
		{"2048 items: want at most 64", []string{strings.Repeat("a,", 2047) + "a"}},
		{"", []string{"a" + strings.Repeat(";b", 256)}},
		{"257 parameters: want at most 256", []string{"a" + strings.Repeat(";b", 257)}},
		{"257 parameters: want at most 256", []string{"a" + strings.Repeat(";b", 200), "b" + strings.Repeat(";c", 57)}},
		{"a list in the list: want items", []string{"a, (b)"}},
		{"", []string{`"` + sixty + sixty + `";b="((;` + strings.Repeat(";", 300) + `"`}},
		{"", []string{`"\"` + sixty + sixty + `\\", a`}},
		{"121 items", []string{`"\\", ` + sixty + sixty[2:]}},
		{"", []string{`%"` + sixty + sixty + `%22("`}},
		{"121 items", []string{`%"\", ` + sixty + sixty[2:]}},
		{"", []string{`"` + sixty + sixty}}, // without a closing quote
		{"", []string{`"` + sixty + sixty + `\`}},
	} {
		parsed := false
		_, ok, err := readLines(f, c.lines, func([]string) ([]quotas.Item, error) { parsed = true; return nil, nil })
		assert.False(t, ok)
		assert.Equal(t, c.want == "", parsed, "%q", c.lines)
		if c.want == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, c.want)
		}
	}
}

// TestNamesThatCannotHaveLimits: CheckName refuses header names that have another meaning or that servers may confuse.
func TestNamesThatCannotHaveLimits(t *testing.T) {
	for _, name := range []string{"RateLimit-Policy", "X-RateLimit-Policy", "x-plan", "Accepted", "X-Forward"} {
		assert.NoError(t, quotas.CheckName(name))
	}
	for want, names := range map[string][]string{
		"want a name of letters, digits and hyphens": {"", "X_Plan", "X.Plan", "X Plan", "X-Pl\u00e4n", "a:b", "X-Plan\n"},
		"is for one connection alone":                {"Connection", "te", "HOST", "Transfer-encoding", "content-length"},
		"has another meaning": {
			"x-forwarded-for", "X-Forwarded-Plan", "Forwarded", "Authorization", "cookie", "If-Match", "Content-Type", "X-Real-IP",
		},
	} {
		for _, name := range names {
			assert.ErrorContains(t, quotas.CheckName(name), want, name)
		}
	}
}
