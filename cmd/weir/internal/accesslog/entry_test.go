package accesslog

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// b keeps the tables readable; an absent field is nil, as ParseLine leaves it.
func b(s string) []byte { return []byte(s) }

var tenOClock = time.Date(2015, time.May, 17, 10, 5, 3, 0, time.UTC)

func TestParseLineAcceptsBothFormats(t *testing.T) {
	const head = `203.0.113.9 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1"`
	plain := Entry{Host: b("203.0.113.9"), Ident: b("-"), User: b("-"), Time: tenOClock,
		Request: b("GET / HTTP/1.1"), Status: 200, Size: 12}
	with := func(change func(*Entry)) Entry {
		e := plain
		change(&e)
		return e
	}
	cases := map[string]struct {
		line string
		want Entry
	}{
		"common": {head + ` 200 12`, plain},
		"combined": {head + ` 200 12 "http://a.example/" "curl/8"`, with(func(e *Entry) {
			e.Referer, e.Agent = b("http://a.example/"), b("curl/8")
		})},
		"ignores what a server appends": {head + ` 200 12 "-" "curl/8" "198.51.100.7" 0.004`, with(func(e *Entry) {
			e.Referer, e.Agent = b("-"), b("curl/8")
		})},
		"IPv6": {`2001:db8::1` + head[len("203.0.113.9"):] + ` 200 12`, with(func(e *Entry) { e.Host = b("2001:db8::1") })},
		"host name": {`crawler.example.org` + head[len("203.0.113.9"):] + ` 200 12`,
			with(func(e *Entry) { e.Host = b("crawler.example.org") })},
		"no status, no size": {head + ` - -`, with(func(e *Entry) { e.Status, e.Size = 0, 0 })},
		"largest size":       {head + ` 200 9223372036854775807`, with(func(e *Entry) { e.Size = 1<<63 - 1 })},
		"escaped quotes in the request": {
			`203.0.113.9 - - [17/May/2015:10:05:03 +0000] "GET /?q=\"a b\" HTTP/1.1" 200 12`,
			with(func(e *Entry) { e.Request = b(`GET /?q=\"a b\" HTTP/1.1`) })},
		"request ending in an escaped backslash": {
			`203.0.113.9 - - [17/May/2015:10:05:03 +0000] "GET /\\" 200 12`,
			with(func(e *Entry) { e.Request = b(`GET /\\`) })},
		"binary request, as TLS sent to a plain port is logged": {
			`203.0.113.9 - - [17/May/2015:10:05:03 +0000] "\x16\x03\x01" 400 0`,
			with(func(e *Entry) { e.Request, e.Status, e.Size = b(`\x16\x03\x01`), 400, 0 })},
		"empty request": {`203.0.113.9 - - [17/May/2015:10:05:03 +0000] "" 200 12`,
			with(func(e *Entry) { e.Request = b("") })},
		"user with spaces": {
			`203.0.113.9 - Jane Doe [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 12`,
			with(func(e *Entry) { e.User = b("Jane Doe") })},
		"user that forges a date": {
			`203.0.113.9 - x [17/May/2030:10:05:03 +0000] y [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 12`,
			with(func(e *Entry) { e.User = b("x [17/May/2030:10:05:03 +0000] y") })},
		"cut off in the agent": {head + ` 200 12 "-" "Mozilla/5.0 (compat`, with(func(e *Entry) {
			e.Referer, e.Agent = b("-"), b("Mozilla/5.0 (compat")
		})},
		"cut off in the referer": {head + ` 200 12 "http://a.exa`, with(func(e *Entry) { e.Referer = b("http://a.exa") })},
		"agent ending in a lone backslash": {head + ` 200 12 "-" "x\`, with(func(e *Entry) {
			e.Referer, e.Agent = b("-"), b(`x\`)
		})},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseLine([]byte(c.line))
			require.NoError(t, err)
			assert.True(t, got.Time.Equal(c.want.Time), "time %s", got.Time)
			got.Time = c.want.Time
			assert.Equal(t, c.want, got)
		})
	}
}

func TestParseLineKeepsTheInstantOfOtherZones(t *testing.T) {
	e, err := ParseLine([]byte(`a - - [17/May/2015:15:35:03 +0530] "GET / HTTP/1.1" 200 1`))
	require.NoError(t, err)
	assert.True(t, e.Time.Equal(tenOClock), "got %s", e.Time)
}

func TestParseLineGivesTheReason(t *testing.T) {
	date := func(d string) string { return `a - - [` + d + `] "GET / HTTP/1.1" 200 1` }
	cases := map[string]struct{ line, reason string }{
		"empty":             {"", "the line is empty"},
		"blank":             {" \t ", "the line is empty"},
		"one word":          {"hello", `no field after "hello"`},
		"leading space":     {` 1.2.3.4 - - [` + dateLayout + `] "G" 200 1`, "no client host before the first space"},
		"binary garbage":    {"\x00\x01\xff \x80", `the client host "\x00\x01\xff" has byte 0x00 at position 1: want printable ASCII`},
		"byte-order mark":   {"\ufeff1.2.3.4 - -", "has byte 0xef at position 1"},
		"terminal escape":   {"a\x1b[2J - -", "has byte 0x1b at position 2"},
		"no bracket at all": {`a - - 17/May/2015:10:05:03 +0000 "GET / HTTP/1.1" 200 1`, "no date in brackets followed by a request in quotes"},
		"no closing one":    {`a - - [17/May/2015:10:05:03 +0000 "GET / HTTP/1.1" 200 1`, "no date in brackets followed by a request in quotes"},
		"no opening one":    {`a - - 17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, "the date has no opening bracket"},
		"no request":        {`a - - [17/May/2015:10:05:03 +0000] 200 1`, "no date in brackets followed by a request in quotes"},
		"no user":           {`a - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, `want the fields ident and user before the date, got "-"`},
		"no ident":          {`a  u [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, `want the fields ident and user before the date, got " u"`},
		"ISO date":          {date("2015-05-17T10:05:03+00:00"), `the date "2015-05-17T10:05:03+00:00" is not of the form 02/Jan/2006:15:04:05 -0700`},
		"fractional second": {date("17/May/2015:10:05:03.25 +0000"), "is not of the form"},
		"no such month":     {date("17/Mai/2015:10:05:03 +0000"), "is not of the form"},
		"no such day":       {date("31/Feb/2015:10:05:03 +0000"), "is impossible: day out of range"},
		"no such hour":      {date("17/May/2015:24:05:03 +0000"), "is impossible: hour out of range"},
		"too early":         {date("17/May/1969:10:05:03 +0000"), "is outside the years 1970 to 2261"},
		"too late":          {date("17/May/2262:10:05:03 +0000"), "is outside the years 1970 to 2261"},
		"open request":      {`a - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1 200 1`, `the request "GET / HTTP/1.1 200 1" has no closing quote`},
		"cut after request": {`a - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1"`, "no status after the request"},
		"word status":       {`a - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" abc 1`, `the status "abc" is neither three digits nor -`},
		"two digit status":  {`a - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 20 1`, `the status "20" is neither three digits nor -`},
		"cut after status":  {`a - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200`, "no size after the status"},
		"negative size":     {`a - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 -5`, `the size "-5" is neither a number of bytes below 2^63 nor -`},
		"size too large":    {`a - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 9223372036854775808`, "is neither a number of bytes below 2^63 nor -"},
		"bare referer":      {`a - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 http://x`, `want a quoted referer and user agent after the size, got " http://x"`},
		"no agent":          {`a - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" curl`, `want a quoted referer and user agent after the size, got " curl"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e, err := ParseLine([]byte(c.line))
			assert.ErrorContains(t, err, c.reason)
			assert.Equal(t, Entry{}, e)
		})
	}
}

func TestParseLineReasonStaysShort(t *testing.T) {
	_, err := ParseLine([]byte(strings.Repeat("x", MaxLine)))
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 200)
}

func TestParseLineDoesNotAllocatePerField(t *testing.T) {
	line := []byte(`203.0.113.9 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 12 "http://a.example/" "curl/8"`)
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := ParseLine(line); err != nil {
			t.Error(err)
		}
	})
	assert.LessOrEqual(t, allocs, 1.0, "only the copy of the date for time.Parse")
}

func BenchmarkParseLine(bm *testing.B) {
	line := []byte(`203.0.113.9 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 12 "http://a.example/" "curl/8"`)
	bm.SetBytes(int64(len(line)))
	bm.ReportAllocs()
	for bm.Loop() {
		if _, err := ParseLine(line); err != nil {
			bm.Fatal(err)
		}
	}
}
