package usage

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkFixture compares what a scanner has found at the end of an answer with what the fixture says.
func checkFixture(t *testing.T, f *Fixture, s *Scanner, how string) {
	t.Helper()
	u, known, final := s.Usage()
	require.Equal(t, f.Known, known, "%s %s", f.File, how)
	require.Equal(t, f.Final, final, "%s %s", f.File, how)
	if known {
		require.Equal(t, f.Usage(), u, "%s %s", f.File, how)
	}
	require.Zero(t, s.BadFields(), "%s %s", f.File, how)
}

// endFixture ends an answer as its server did. If the answer reports a failure, it does not end normally.
func endFixture(f *Fixture, s *Scanner) {
	if f.Final {
		s.End()
	}
}

// TestCorpus (pitfalls 17, 21 to 26, 29 of docs/budgets.md) reads each fixture in several ways: byte by byte, and in
// two pieces for every place of the cut.
func TestCorpus(t *testing.T) {
	for _, f := range Corpus() {
		for cut := range len(f.Body) + 1 {
			s := NewScanner(f.ContentType, Models)
			s.Write(f.Body[:cut])
			s.Write(f.Body[cut:])
			endFixture(f, s)
			checkFixture(t, f, s, fmt.Sprintf("cut at %d", cut))
		}
		s := NewScanner(f.ContentType, Models)
		for i := range f.Body {
			s.Write(f.Body[i : i+1])
		}
		endFixture(f, s)
		checkFixture(t, f, s, "byte by byte")
	}
}

// TestBrokenOff (pitfall 18): if an answer is cut off, its usage is final only if it is complete.
func TestBrokenOff(t *testing.T) {
	for _, f := range Corpus() {
		was := false
		for cut := range len(f.Body) + 1 {
			s := NewScanner(f.ContentType, Models)
			s.Write(f.Body[:cut])
			u, _, final := s.Usage()
			if final {
				require.Equal(t, f.Usage(), u, "%s cut at %d", f.File, cut)
			}
			require.False(t, was && !final, "%s cut at %d", f.File, cut)
			was = final
		}
	}
}

// TestFinalBeforeTheEnd (pitfall 16): the usage of a stream is final before the last line of the stream. A client may
// disconnect before that line.
func TestFinalBeforeTheEnd(t *testing.T) {
	for _, f := range Corpus() {
		if !f.Final || !f.UsageChunk && f.API == "openai" && f.ContentType != "application/json" && f.Path != "/v1/responses" {
			continue
		}
		if strings.HasSuffix(f.File, ".json") {
			continue // its usage is final only at the end of the document
		}
		s := NewScanner(f.ContentType, Models)
		cut := len(bytes.TrimRight(f.Body, "\r\n"))
		if done := bytes.Index(f.Body, []byte("[DONE]")); done > 0 {
			cut = done - len("data:")
		}
		s.Write(f.Body[:cut])
		_, _, final := s.Usage()
		assert.True(t, final, f.File)
	}
}

// TestCompressed (pitfall 27): answers compressed by gzip, br and zstd are read, wherever the stream is cut. They are
// also read without a Content-Encoding.
func TestCompressed(t *testing.T) {
	compress := map[string]func([]byte) []byte{
		"gzip": func(p []byte) []byte {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write(p)
			_ = z.Close()
			return b.Bytes()
		},
		"br": func(p []byte) []byte {
			var b bytes.Buffer
			z := brotli.NewWriter(&b)
			_, _ = z.Write(p)
			_ = z.Close()
			return b.Bytes()
		},
		"zstd": func(p []byte) []byte {
			z, err := zstd.NewWriter(nil)
			require.NoError(t, err)
			defer z.Close()
			return z.EncodeAll(p, nil)
		},
	}
	for _, f := range Corpus() {
		if f.API == "bedrock" && f.ContentType != "application/json" {
			continue // its Content-Type says that it is a binary stream
		}
		for encoding, of := range compress {
			body := of(f.Body)
			for _, label := range []string{encoding, ""} {
				for cut := 0; cut <= len(body); cut += 7 {
					a := NewAnswer(f.ContentType, label, Models)
					a.Write(body[:cut])
					a.Write(body[cut:])
					if f.Final {
						a.End()
					} else {
						a.Close()
					}
					require.False(t, a.Unread())
					a.Scanner(func(s *Scanner) {
						checkFixture(t, f, s, fmt.Sprintf("%s, labeled %q, cut at %d", encoding, label, cut))
					})
				}
			}
		}
	}
	assert.Zero(t, decoding.Load())
}

// TestNotWhatItSays: an uncompressed answer is read even if its encoding is gzip. If the encoding is unknown or broken,
// Unread reports this.
func TestNotWhatItSays(t *testing.T) {
	plain := []byte(`{"usage":{"total_tokens":5}}`)
	a := NewAnswer("application/json", "gzip", Models)
	a.Write(plain) // not compressed, in spite of the label
	a.End()
	assert.False(t, a.Unread())
	for _, encoding := range []string{"br", "compress", "gzip, br"} {
		a := NewAnswer("application/json", encoding, Models)
		for range 100 {
			a.Write([]byte("{\x01\x02\x03 this is none of it at all"))
		}
		a.End()
		assert.True(t, a.Unread(), encoding)
		a.Scanner(func(s *Scanner) {
			_, known, _ := s.Usage()
			assert.False(t, known)
		})
	}
	assert.Zero(t, decoding.Load())
}
