package accesslog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	combinedLine = `203.0.113.9 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 12 "-" "curl/8"` + "\n"
	commonLine   = `203.0.113.9 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 12` + "\n"
	vhostLine    = `www.example.com:443 198.51.100.7 - - [17/May/2015:10:05:04 +0000] "GET / HTTP/1.1" 200 12 ` +
		`"-" "curl/8"` + "\n"
)

// read parses the text of a log and returns its entries as texts. For the format "", it detects the format.
func read(t *testing.T, format, text string) (all []string) {
	t.Helper()
	log := NewLog(strings.NewReader(text))
	var err error
	log.format, err = formatNamed(format)
	require.NoError(t, err)
	return readAll(t, log)
}

func TestEveryLineIsOfOneFormat(t *testing.T) {
	for _, of := range Formats() {
		text, err := os.ReadFile(filepath.Join("testdata", "logs", of+".log"))
		require.NoError(t, err)
		for _, line := range firstLines(text, true) {
			var taken []string
			for _, f := range formats {
				if p := (&parser{}); f != common && p.parse(f, line.text) == nil {
					taken = append(taken, f.name)
				}
			}
			assert.LessOrEqual(t, len(taken), 1, "%s, line %d: %v", of, line.number, taken)
		}
	}
}

func TestAVirtualHostIsNotTakenForTheClient(t *testing.T) {
	for _, host := range []string{"www.example.com:443", "www.example.com", "192.0.2.1:80", "192.0.2.1",
		"[2001:db8::5]:80"} {
		for _, client := range []string{"198.51.100.7", "2001:db8::7", "crawler.example.org"} {
			line := host + " " + client + ` - - [17/May/2015:10:05:04 +0000] "GET / HTTP/1.1" 200 12`
			p := &parser{}
			assert.ErrorContains(t, p.parse(combined, []byte(line)), "is \""+host+"\" a virtual host")
			got := read(t, "", line)
			require.Len(t, got, 1)
			assert.Contains(t, got[0], `client "`+client+`"`)
			assert.Contains(t, got[0], `host "`+host+`"`)
		}
	}
}

func TestAnotherFormatIsNotDetected(t *testing.T) {
	cases := map[string]struct {
		text string
		want []string
	}{
		"two formats": {combinedLine + "\n" + vhostLine, []string{
			"its lines are of two formats: line 1 is combined, line 3 is vhost_combined:\n    203.0.113.9 - - [17/May",
			"\n    www.example.com:443 198.51.100.7 - - [17/May",
			"\nsay --format combined or --format vhost_combined; lines of the other are then skipped"}},
		"no format": {"\nhello \x1b[2J\nworld\n", []string{
			"line 2 is in no known format (nor is any after it); is it an access log?\n    hello \\x1b[2J\ntried:\n",
			"\n    combined        no date in brackets followed by a request in quotes",
			"\n    caddy           not a JSON object",
			"\n    alb             the line ends too early",
			"with --format NAME"}},
		"other JSON":           {`{"a":1}`, []string{"\n    nginx_json      no \"remote_addr\""}},
		"binary":               {strings.Repeat("\x00\xff", 500), []string{`    \x00\xff\x00`, "...\ntried:"}},
		"one line without end": {strings.Repeat("x", 3*MaxLine), []string{"the line is longer than 1048576 bytes"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			log := NewLog(strings.NewReader(c.text))
			_, err := log.Next()
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
			assert.Less(t, len(err.Error()), 4000)
			_, again := log.Fields()
			assert.Equal(t, err, again)
		})
	}
}

func TestAForcedFormatSkipsTheOtherLines(t *testing.T) {
	for format, client := range map[string]string{"combined": "203.0.113.9", "vhost_combined": "198.51.100.7"} {
		got := strings.Join(read(t, format, combinedLine+vhostLine), "\n")
		assert.Contains(t, got, `client "`+client+`"`)
		assert.Equal(t, 1, strings.Count(got, "client \""), got)
		assert.Regexp(t, "(?m)^line [12]: ", got)
	}
	got := read(t, "combined", "hello\n"+strings.Repeat("x", 3*MaxLine)+"\n"+combinedLine)
	require.Len(t, got, 3)
	assert.Equal(t, "line 2: the line is longer than 1048576 bytes", got[1])
	_, err := Open([]string{"x"}, "apache")
	assert.ErrorContains(t, err,
		`there is no format "apache": want combined, common, vhost_combined, nginx_json, caddy`)
}

func TestFewLinesOfAFormatAreEnough(t *testing.T) {
	got := read(t, "", strings.Repeat("[error] something else\n", sampleLines-1)+combinedLine)
	assert.Len(t, got, sampleLines)
	log := NewLog(strings.NewReader(strings.Repeat("[error] something else\n", sampleLines) + combinedLine))
	_, err := log.Next()
	assert.ErrorContains(t, err, "line 1 is in no known format")
}

func TestCommonIsCombinedWithoutReferer(t *testing.T) {
	for text, want := range map[string]string{
		commonLine: "common", combinedLine: "combined", commonLine + combinedLine: "combined", "": "", "\n \n": "",
	} {
		log := NewLog(strings.NewReader(text))
		_, err := log.Fields()
		require.NoError(t, err)
		assert.Equal(t, want, log.Format(), text)
	}
}

func TestFieldsSayWhatALogHolds(t *testing.T) {
	caddy := func(header string) string {
		return `{"ts":1,"status":200,"request":{` + header + `"client_ip":"a","method":"GET","uri":"/","host":"h"}}`
	}
	cases := map[string]struct {
		text     string
		host     bool
		held     []string
		notTaken []string
	}{
		"common":   {commonLine, false, nil, []string{"Referer", "User-Agent"}},
		"combined": {combinedLine, false, []string{"Referer", "User-Agent"}, []string{"Cookie"}},
		"vhost":    {vhostLine, true, []string{"Referer", "User-Agent"}, []string{"Cookie"}},
		"nginx, a header that is not sent": {`{"remote_addr":"a","time":"1","request":"","http_x_tenant":""}`, false,
			[]string{"X-Tenant"}, []string{"User-Agent"}},
		"nginx, with an object like Caddy's": {`{"remote_addr":"a","time":"1","request_uri":"/","request":{"headers":{}}}`,
			false, nil, []string{"User-Agent"}},
		"Caddy": {caddy(`"headers":{},`), true, []string{"X-Any", "User-Agent"},
			[]string{"Cookie", "Authorization", "Proxy-Authorization"}},
		"Caddy, secrets shown": {caddy(`"headers":{"Cookie":["a=b"]},`), true, []string{"Cookie"},
			[]string{"Authorization"}},
		"Caddy, more redacted": {caddy(`"headers":{"X-Key":["REDACTED"]},`), true, []string{"X-Any"},
			[]string{"X-Key"}},
		"Caddy, a client writes it": {caddy(`"headers":{"X-Key":["REDACTED"]},`) + "\n" +
			caddy(`"headers":{"X-Key":["k"]},`) + "\n" + caddy(`"headers":{"X-Key":["REDACTED"]},`), true,
			[]string{"X-Key"}, nil},
		"combined, a client writes it": {strings.ReplaceAll(combinedLine, "curl/8", "REDACTED"), false,
			[]string{"User-Agent"}, nil},
		"Caddy, no headers": {caddy(``), true, nil, []string{"User-Agent", "X-Any"}},
		"Traefik": {`{"ClientHost":"a","RequestMethod":"GET","RequestPath":"/","StartUTC":"2026-11-20T09:00:00Z",` +
			`"request_X-A":"1","request_X-B":"REDACTED"}`,
			false, []string{"X-A"}, []string{"X-B", "User-Agent"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fields, err := NewLog(strings.NewReader(c.text)).Fields()
			require.NoError(t, err)
			assert.Equal(t, c.host, fields.Host)
			for _, h := range c.held {
				assert.True(t, fields.Header(h), h)
			}
			for _, h := range c.notTaken {
				assert.False(t, fields.Header(h), h)
			}
		})
	}
}

func TestSeveralLogsHoldWhatAllDo(t *testing.T) {
	some := func(all bool, names ...string) Fields { return Fields{Host: all, allHeaders: all, headers: names} }
	cases := map[string]struct {
		a, b      Fields
		held, not []string
	}{
		"two lists":        {some(false, "A", "B"), some(false, "B", "C"), []string{"B"}, []string{"A", "C", "D"}},
		"all but some":     {some(true, "A"), some(true, "B"), []string{"C"}, []string{"A", "B"}},
		"all and some":     {some(true, "A"), some(false, "A", "B"), []string{"B"}, []string{"A", "C"}},
		"the other way":    {some(false, "A", "B"), some(true, "A"), []string{"B"}, []string{"A", "C"}},
		"with one of none": {some(false), some(true), nil, []string{"A"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			both := c.a.intersect(c.b)
			assert.Equal(t, c.a.Host && c.b.Host, both.Host)
			for _, h := range c.held {
				assert.True(t, both.Header(h), h)
			}
			for _, h := range c.not {
				assert.False(t, both.Header(h), h)
			}
		})
	}
}
