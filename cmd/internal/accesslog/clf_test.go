package accesslog

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCombinedGivesTheReason(t *testing.T) {
	const request = `a - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1"`
	date := func(d string) string { return `a - - [` + d + `] "GET / HTTP/1.1" 200 1` }
	cases := map[string]struct{ line, reason string }{
		"empty":         {"", "the line is empty"},
		"blank":         {" \t ", "the line is empty"},
		"one word":      {"hello", "no date in brackets followed by a request in quotes"},
		"leading space": {` 1.2.3.4 - - [17/May/2015:10:05:03 +0000] "G" 200 1`, "no client"},
		"binary garbage": {"\x00\x01\xff - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1",
			`the client "\x00\x01\xff" has byte 0x00 at position 1: want printable ASCII`},
		"terminal escape": {"a\x1b[2J - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1",
			"has byte 0x1b at position 2"},
		"no bracket at all": {`a - - 17/May/2015:10:05:03 +0000 "GET / HTTP/1.1" 200 1`,
			"no date in brackets followed by a request in quotes"},
		"no closing one": {`a - - [17/May/2015:10:05:03 +0000 "GET / HTTP/1.1" 200 1`,
			"no date in brackets followed by a request in quotes"},
		"no opening one": {`a - - 17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`,
			"the date has no opening bracket"},
		"no request": {`a - - [17/May/2015:10:05:03 +0000] 200 1`,
			"no date in brackets followed by a request in quotes"},
		"no user": {`a - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`,
			`want the fields ident and user before the date, got "-"`},
		"no ident": {`a  u [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`,
			`want the fields ident and user before the date, got " u"`},
		"ISO date": {date("2015-05-17T10:05:03+00:00"),
			`the date "2015-05-17T10:05:03+00:00" is not of the form 02/Jan/2006:15:04:05 -0700`},
		"fractional second": {date("17/May/2015:10:05:03.25 +0000"), "is not of the form"},
		"no client":         {`- - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, `no client, but "-"`},
		"no such month":     {date("17/Mai/2015:10:05:03 +0000"), "is not of the form"},
		"no such day":       {date("31/Feb/2015:10:05:03 +0000"), "is impossible: day out of range"},
		"no such hour":      {date("17/May/2015:24:05:03 +0000"), "is impossible: hour out of range"},
		"too early":         {date("17/May/1969:10:05:03 +0000"), "is outside the years 1970 to 2261"},
		"too late":          {date("17/May/2262:10:05:03 +0000"), "is outside the years 1970 to 2261"},
		"open request": {`a - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1 200 1`,
			`the request "GET / HTTP/1.1 200 1" has no closing quote`},
		"cut after request": {request, "no status after the request"},
		"word status":       {request + ` abc 1`, `the status "abc" is neither three digits nor -`},
		"two digit status":  {request + ` 20 1`, `the status "20" is neither three digits nor -`},
		"cut after status":  {request + ` 200`, `no size after the status "200"`},
		"negative size":     {request + ` 200 -5`, `the size "-5" is neither a number of bytes below 2^63 nor -`},
		"size too large": {request + ` 200 9223372036854775808`,
			"is neither a number of bytes below 2^63 nor -"},
		"bare referer": {request + ` 200 1 http://x`,
			`want a quoted referer and user agent after the size, got " http://x"`},
		"no agent": {request + ` 200 1 "-" curl`,
			`want a quoted referer and user agent after the size, got " curl"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.ErrorContains(t, (&parser{}).parse(combined, []byte(c.line)), c.reason)
		})
	}
}
