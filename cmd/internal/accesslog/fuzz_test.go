package accesslog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fuzzFormat parses any bytes as a line of a format. The parser must refuse them with a readable reason, or return an
// entry that a replay can use. The lines of all samples are the seeds.
func fuzzFormat(f *testing.F, name string) {
	format, err := formatNamed(name)
	require.NoError(f, err)
	for _, of := range Formats() {
		text, err := os.ReadFile(filepath.Join("testdata", "logs", of+".log"))
		require.NoError(f, err)
		for line := range bytes.Lines(text) {
			f.Add(bytes.TrimSuffix(line, []byte("\n")))
		}
	}
	p := &parser{}
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		err := p.parse(format, line)
		require.Equal(t, before, line, "the line itself must not change")
		if err != nil {
			assert.NotEmpty(t, err.Error())
			assert.Less(t, len(err.Error()), 800, "a reason is one readable line: %v", err)
			return
		}
		checkEntry(t, &p.entry)
		first := entryText(&p.entry)
		again := &parser{optional: newFieldSet()}
		require.NoError(t, again.parse(format, line))
		assert.Equal(t, first, entryText(&again.entry), "the parser remembers nothing of the lines before")
		for _, h := range again.entry.Headers {
			assert.True(t, again.optional.fields().Header(h.Name), "a header that is there is one that the log holds")
		}
		for _, other := range formats {
			if other != format && !(isCLF(other) && isCLF(format)) {
				assert.Error(t, again.parse(other, line), "a line is of one format: %s, not %s", name, other.name)
			}
		}
	})
}

func isCLF(f *format) bool { return f == combined || f == common }

func checkEntry(t *testing.T, e *Entry) {
	t.Helper()
	assert.NotEmpty(t, e.Client)
	for _, c := range e.Client {
		assert.True(t, c > ' ' && c <= '~', "the client is printable: %q", e.Client)
	}
	nanos := e.Time.UnixNano()
	assert.Equal(t, e.Time.Unix(), (nanos-int64(e.Time.Nanosecond()))/1e9, "UnixNano must not overflow")
	assert.True(t, e.Status >= 0 && e.Status <= 999, "status %d", e.Status)
	assert.GreaterOrEqual(t, e.Size, int64(0))
	assert.Equal(t, e.IsHTTP(), len(e.Target) > 0, "a request has both or none")
	if !e.IsHTTP() {
		assert.Empty(t, e.Proto)
	}
	for _, h := range e.Headers {
		assert.NotEmpty(t, h.Value)
	}
}

func FuzzCombined(f *testing.F)      { fuzzFormat(f, "combined") }
func FuzzVHostCombined(f *testing.F) { fuzzFormat(f, "vhost_combined") }
func FuzzNginxJSON(f *testing.F)     { fuzzFormat(f, "nginx_json") }
func FuzzCaddy(f *testing.F)         { fuzzFormat(f, "caddy") }
func FuzzTraefikJSON(f *testing.F)   { fuzzFormat(f, "traefik_json") }
func FuzzALB(f *testing.F)           { fuzzFormat(f, "alb") }
func FuzzWeir(f *testing.F)          { fuzzFormat(f, "weir") }
func FuzzWeirJSON(f *testing.F)      { fuzzFormat(f, "weir_json") }
func FuzzELB(f *testing.F)           { fuzzFormat(f, "elb") }
func FuzzS3(f *testing.F)            { fuzzFormat(f, "s3") }
func FuzzCloudFront(f *testing.F)    { fuzzFormat(f, "cloudfront") }
func FuzzGCP(f *testing.F)           { fuzzFormat(f, "gcp") }
func FuzzIIS(f *testing.F)           { fuzzFormat(f, "iis") }
func FuzzHAProxy(f *testing.F)       { fuzzFormat(f, "haproxy") }
func FuzzEnvoy(f *testing.F)         { fuzzFormat(f, "envoy") }
func FuzzIstio(f *testing.F)         { fuzzFormat(f, "istio") }
func FuzzEnvoyJSON(f *testing.F)     { fuzzFormat(f, "envoy_json") }

// FuzzCombinedRoundTrip: parsing loses nothing. An entry that is written as a line and parsed again is the same entry.
func FuzzCombinedRoundTrip(f *testing.F) {
	for _, name := range []string{"common", "combined"} {
		text, err := os.ReadFile(filepath.Join("testdata", "logs", name+".log"))
		require.NoError(f, err)
		for line := range bytes.Lines(text) {
			f.Add(bytes.TrimSuffix(line, []byte("\n")))
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		p, again := &parser{}, &parser{}
		if p.parse(combined, line) != nil || !p.entry.IsHTTP() {
			return
		}
		require.NoError(t, again.parse(combined, write(&p.entry)))
		assert.Equal(t, entryText(&p.entry), entryText(&again.entry))
	})
}

// write returns an entry as a line of the combined format, with nginx's escapes.
func write(e *Entry) []byte {
	header := map[string][]byte{"Referer": []byte("-"), "User-Agent": []byte("-")}
	for _, h := range e.Headers {
		header[h.Name] = escape(h.Value)
	}
	return fmt.Appendf(nil, `%s - - [%s] "%s %s %s" %03d %d "%s" "%s"`, e.Client, e.Time.UTC().Format(clfForm),
		escape(e.Method), escape(e.Target), escape(e.Proto), e.Status, e.Size, header["Referer"], header["User-Agent"])
}

func escape(text []byte) (escaped []byte) {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			escaped = fmt.Appendf(escaped, `\x%02X`, c)
		} else {
			escaped = append(escaped, c)
		}
	}
	return escaped
}

// FuzzLog reads any bytes as a log. The reading must end, and each line must give an entry, a reason or an error, in
// the detected format. Compressed logs are skipped, because they take memory; TestBrokenCompressionIsExplained tests
// them.
func FuzzLog(f *testing.F) {
	for _, name := range Formats() {
		text, err := os.ReadFile(filepath.Join("testdata", "logs", name+".log"))
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte("\xff\xfeh\x00i\x00\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		log := NewLog(bytes.NewReader(data))
		for e, err := range entries(log) {
			if err != nil {
				assert.Less(t, len(err.Error()), 8000)
				continue
			}
			checkEntry(t, e)
			assert.NotEmpty(t, log.Format())
		}
	})
}
