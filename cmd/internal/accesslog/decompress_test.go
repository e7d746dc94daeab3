package accesslog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func packed(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "packed", name))
	require.NoError(t, err)
	return data
}

var compressions = map[string]string{"gzip": "lines.gz", "bzip2": "lines.bz2", "xz": "lines.xz", "zstd": "lines.zst"}

func TestEveryCompressionIsRead(t *testing.T) {
	var want []string
	for i := range 1000 {
		want = append(want, fmt.Sprintf("line %d", i+1))
	}
	// Files of pzstd begin with a skippable frame. This frame has 4 bytes of data.
	skipped := "\x50\x2a\x4d\x18\x04\x00\x00\x00\x00\x00\x00\x00"
	for name, file := range compressions {
		t.Run(name, func(t *testing.T) {
			data := packed(t, file)
			got, err := drain(newLines(bytes.NewReader(data)))
			require.NoError(t, err)
			assert.Equal(t, want, got)

			got, err = drain(newLines(iotest.OneByteReader(bytes.NewReader(data))))
			require.NoError(t, err, "from a slow pipe")
			assert.Equal(t, want, got)

			got, err = drain(newLines(bytes.NewReader(append(data, data...))))
			require.NoError(t, err, "two in a row")
			assert.Equal(t, append(want[:1000:1000], want...), got)
		})
	}
	got, err := drain(newLines(bytes.NewReader(append([]byte(skipped), packed(t, "lines.zst")...))))
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// TestBrokenCompressionIsExplained: for data that were cut off, the error says that they are truncated. Nearly every
// change of a byte is found, and the error says that the data are damaged.
func TestBrokenCompressionIsExplained(t *testing.T) {
	for name, file := range compressions {
		t.Run(name, func(t *testing.T) {
			data := packed(t, file)
			const step = 11
			shortest := len("\xfd7zXZ\x00")
			if name == "bzip2" {
				shortest = startSize // fewer bytes could be text
			}
			for length := shortest; length < len(data); length += step {
				_, err := drain(newLines(bytes.NewReader(data[:length])))
				if assert.ErrorContains(t, err, "the "+name+" data ", "cut at %d", length) {
					assert.Contains(t, err.Error(), "the file is truncated", "cut at %d", length)
				}
			}
			tried, found := 0, 0
			for at := startSize; at < len(data); at += step {
				damage := bytes.Clone(data)
				damage[at] ^= 0x55
				tried++
				if _, err := drain(newLines(bytes.NewReader(damage))); err != nil {
					found++
					assert.ErrorContains(t, err, "the "+name+" data ")
				}
			}
			assert.Greater(t, found, tried*9/10, "checksums find nearly all")
		})
	}
}

func TestDataThatAsksForMuchMemoryIsRefused(t *testing.T) {
	for file, name := range map[string]string{"needs_512MiB.xz": "xz", "needs_1GiB.zst": "zstd"} {
		data := packed(t, file)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := drain(newLines(bytes.NewReader(data)))
		runtime.ReadMemStats(&after)
		assert.ErrorContains(t, err, "the "+name+" data needs more than 128 MiB of memory to be unpacked")
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
	}
}

func TestOtherPackingIsRefused(t *testing.T) {
	for name, start := range map[string]string{
		"zip": "PK\x03\x04", "7z": "7z\xbc\xaf\x27\x1c", "lz4": "\x04\x22\x4d\x18", "compress (.Z)": "\x1f\x9d",
	} {
		_, err := drain(newLines(strings.NewReader(start + "and so on and on")))
		assert.ErrorContains(t, err, "this is "+name+", which cannot be read: unpack it first")
	}
}

func TestTextThatBeginsLikeAMagicNumberIsText(t *testing.T) {
	for _, text := range []string{"BZh9 is a name", "P", "PK", "7z", "(\xb5", "BZh", "P*M"} {
		got, err := drain(newLines(strings.NewReader(text)))
		require.NoError(t, err)
		assert.Equal(t, []string{text}, got)
	}
}
