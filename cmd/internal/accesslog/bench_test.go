package accesslog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testalloc"
)

// goodLines returns the lines of a format's sample that are entries, and their total size in bytes.
func goodLines(tb testing.TB, f *format) (lines [][]byte, size int64) {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "logs", f.name+".log"))
	require.NoError(tb, err)
	for _, line := range firstLines(text, true) {
		if (&parser{}).parse(f, line.text) == nil {
			lines = append(lines, line.text)
			size += int64(len(line.text))
		}
	}
	require.NotEmpty(tb, lines)
	return lines, size
}

func TestNoFormatAllocatesForALine(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			lines, _ := goodLines(t, f)
			p := &parser{}
			allocs := testalloc.PerCall(func() {
				for _, line := range lines {
					if err := p.parse(f, line); err != nil {
						t.Error(err)
					}
				}
			})
			assert.Zero(t, allocs)
		})
	}
}

// BenchmarkParse measures the time per line for each format.
func BenchmarkParse(b *testing.B) {
	for _, f := range formats {
		b.Run(f.name, func(b *testing.B) {
			lines, size := goodLines(b, f)
			b.SetBytes(size / int64(len(lines)))
			b.ReportAllocs()
			p := &parser{}
			for i := 0; b.Loop(); i++ {
				if err := p.parse(f, lines[i%len(lines)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEncodingJSON decodes the fields of parseCaddy with encoding/json, for comparison.
func BenchmarkEncodingJSON(b *testing.B) {
	f, err := formatNamed("caddy")
	require.NoError(b, err)
	lines, size := goodLines(b, f)
	b.SetBytes(size / int64(len(lines)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		var line struct {
			TS           any
			Status, Size int
			Request      struct {
				ClientIP string `json:"client_ip"`
				RemoteIP string `json:"remote_ip"`
				Method   string
				Host     string
				URI      string
				Proto    string
				Headers  map[string][]string
			}
		}
		if err := json.Unmarshal(lines[i%len(lines)], &line); err != nil {
			b.Fatal(err)
		}
	}
}
