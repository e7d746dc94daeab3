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

// checkFixture compares what a scanner has found at the end of an answer.
func checkFixture(t *testing.T, f *Fixture, s *Scanner, how string) {
	t.Helper()
	u, known, final := s.Usage()
	require.Equal(t, f.Known, known, "%s %s", f.File, how)
	require.Equal(t, f.Final, final, "%s %s", f.File, how)
	if known {
		require.Equal(t, f.Usage(), u, "%s %s", f.File, how)
	}
	require.Zero(t, s.Bad(), "%s %s", f.File, how)
}

// endFixture ends an answer as its server did: one that says that it has failed does not end as it should.
func endFixture(f *Fixture, s *Scanner) {
	if f.Final {
		s.End()
	}
}

// TestCorpus (pitfalls 17, 21 to 26, 29): every fixture is read cut at every byte, and byte by byte.
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

// TestBrokenOff (pitfall 18): if an answer is cut off, its usage counts as final only if it is complete.
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

// TestFinalBeforeTheEnd (pitfall 16): the usage of a stream is final before its last line, where a client may leave.
func TestFinalBeforeTheEnd(t *testing.T) {
	for _, f := range Corpus() {
		if !f.Final || !f.UsageChunk && f.API == "openai" && f.ContentType != "application/json" && f.Path != "/v1/responses" {
			continue
		}
		if strings.HasSuffix(f.File, ".json") {
			continue // its end is that of the document
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

// TestCompressed (pitfall 27): gzip, br and zstd are read, labeled or not, and cut anywhere.
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
			continue // a binary stream says so
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

// TestNotWhatItSays: a plain answer with the label gzip is read. An answer whose encoding is unknown or broken is not
// read, and that is reported.
func TestNotWhatItSays(t *testing.T) {
	plain := []byte(`{"usage":{"total_tokens":5}}`)
	a := NewAnswer("application/json", "gzip", Models)
	a.Write(plain) // not compressed after all
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
