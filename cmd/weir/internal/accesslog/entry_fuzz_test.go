package accesslog

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzParseLine checks, on any bytes, that a line is either refused with a
// reason or taken apart without loss: the fields put together again must give
// back the line up to where the optional fields begin, byte for byte, and a
// line written from the entry must parse to the same entry.
func FuzzParseLine(f *testing.F) {
	for _, seed := range []string{
		``,
		`a`,
		`203.0.113.9 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 12`,
		`2001:db8::1 - Jane Doe [29/Feb/2016:23:59:59 -0730] "GET /\"x\" HTTP/2" - - "-" "curl/8"`,
		`h i u [x] y [01/Jan/1970:00:00:00 +0000] "" 404 0 "http://r" "Mozilla/5.0 (cut`,
		`h i u [31/Feb/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`,
		"\x1f\x8b\x08\x00 - - [",
		`h - - [17/May/2015:10:05:03 +0000] "\\" 200 9223372036854775808`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		e, err := ParseLine(line)
		require.Equal(t, before, line, "the line itself must not change")
		if err != nil {
			assert.Equal(t, Entry{}, e)
			assert.NotEmpty(t, err.Error())
			assert.Less(t, len(err.Error()), 400, "a reason is one readable line")
			return
		}

		head := fmt.Appendf(nil, "%s %s %s [", e.Host, e.Ident, e.User)
		require.True(t, bytes.HasPrefix(line, head), "want prefix %q", head)
		request := fmt.Appendf(nil, "] \"%s\" ", e.Request)
		date := line[len(head):]
		require.True(t, bytes.HasPrefix(date[min(len(dateLayout), len(date)):], request), "want %q after the date", request)

		assert.NotContains(t, string(e.Host), " ")
		assert.NotContains(t, string(e.Ident), " ")
		assert.True(t, e.Status >= 0 && e.Status <= 999)
		assert.GreaterOrEqual(t, e.Size, int64(0))
		nanos := e.Time.UnixNano()
		assert.Equal(t, e.Time.Unix(), nanos/1e9, "UnixNano must not overflow")

		again, err := ParseLine(write(e))
		require.NoError(t, err)
		assert.True(t, e.Time.Equal(again.Time), "%s became %s", e.Time, again.Time)
		again.Time = e.Time
		assert.Equal(t, e, again)
	})
}

// write is the inverse of ParseLine: it logs e in the Combined format, or in
// the Common one where e has no referer.
func write(e Entry) []byte {
	line := fmt.Appendf(nil, `%s %s %s [%s] "%s" %03d %d`,
		e.Host, e.Ident, e.User, e.Time.UTC().Format(dateLayout), e.Request, e.Status, e.Size)
	if e.Referer == nil {
		return line
	}
	line = fmt.Appendf(line, ` "%s`, e.Referer)
	if e.Agent == nil {
		return line
	}
	return fmt.Appendf(line, `" "%s`, e.Agent)
}
