package usage

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A fixture is an answer of one of the APIs, and what it has cost.
type fixture struct {
	File        string
	API         string
	Path        string
	ContentType string `json:"content_type"`
	Known       bool
	Final       bool
	UsageChunk  bool `json:"usage_chunk"` // an event for clients that have asked for the usage
	Usage       struct {
		Input, Output, Total, Cached uint64
		CacheWrite                   uint64 `json:"cache_write"`
		NoInput                      bool   `json:"no_input"`
	}
	body []byte
}

func (f *fixture) usage() Usage {
	u := f.Usage
	return Usage{Input: u.Input, Output: u.Output, Total: u.Total, Cached: u.Cached, CacheWrite: u.CacheWrite, NoInput: u.NoInput}
}

func corpus(t testing.TB) (all []*fixture) {
	t.Helper()
	index, err := os.ReadFile(filepath.Join("testdata", "corpus", "index.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(index, &all))
	for _, f := range all {
		f.body, err = os.ReadFile(filepath.Join("testdata", "corpus", f.File))
		require.NoError(t, err)
	}
	return all
}

// check compares what a scanner has found at the end of an answer.
func (f *fixture) check(t *testing.T, s *Scanner, how string) {
	t.Helper()
	u, known, final := s.Usage()
	require.Equal(t, f.Known, known, "%s %s", f.File, how)
	require.Equal(t, f.Final, final, "%s %s", f.File, how)
	if known {
		require.Equal(t, f.usage(), u, "%s %s", f.File, how)
	}
	require.Zero(t, s.Bad(), "%s %s", f.File, how)
}

// end ends an answer as its server did: one that says that it has failed does not end as it should.
func (f *fixture) end(s *Scanner) {
	if f.Final {
		s.End()
	}
}

// TestCorpus (pitfalls 17, 21 to 26, 29): every fixture, cut at every byte, and byte by byte.
func TestCorpus(t *testing.T) {
	for _, f := range corpus(t) {
		for cut := range len(f.body) + 1 {
			s := NewScanner(f.ContentType, Models)
			s.Write(f.body[:cut])
			s.Write(f.body[cut:])
			f.end(s)
			f.check(t, s, fmt.Sprintf("cut at %d", cut))
		}
		s := NewScanner(f.ContentType, Models)
		for i := range f.body {
			s.Write(f.body[i : i+1])
		}
		f.end(s)
		f.check(t, s, "byte by byte")
	}
}

// TestBrokenOff (pitfall 18): what an answer has said when it breaks off is final only after its last event, and then
// it is all of it.
func TestBrokenOff(t *testing.T) {
	for _, f := range corpus(t) {
		was := false
		for cut := range len(f.body) + 1 {
			s := NewScanner(f.ContentType, Models)
			s.Write(f.body[:cut])
			u, _, final := s.Usage()
			if final {
				require.Equal(t, f.usage(), u, "%s cut at %d", f.File, cut)
			}
			require.False(t, was && !final, "%s cut at %d", f.File, cut)
			was = final
		}
	}
}

// TestFinalBeforeTheEnd (pitfall 16): the usage of a stream is final before its last line, where a client may leave.
func TestFinalBeforeTheEnd(t *testing.T) {
	for _, f := range corpus(t) {
		if !f.Final || !f.UsageChunk && f.API == "openai" && f.ContentType != "application/json" && f.Path != "/v1/responses" {
			continue
		}
		if strings.HasSuffix(f.File, ".json") {
			continue // its end is that of the document
		}
		s := NewScanner(f.ContentType, Models)
		cut := len(bytes.TrimRight(f.body, "\r\n"))
		if done := bytes.Index(f.body, []byte("[DONE]")); done > 0 {
			cut = done - len("data:")
		}
		s.Write(f.body[:cut])
		_, _, final := s.Usage()
		assert.True(t, final, f.File)
	}
}

// TestCompressed (pitfall 27): gzip, br and zstd, labeled or not, cut anywhere.
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
	for _, f := range corpus(t) {
		if f.API == "bedrock" && f.ContentType != "application/json" {
			continue // a binary stream says so
		}
		for encoding, of := range compress {
			body := of(f.body)
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
					a.Scanner(func(s *Scanner) { f.check(t, s, fmt.Sprintf("%s, labeled %q, cut at %d", encoding, label, cut)) })
				}
			}
		}
	}
	assert.Zero(t, decoding.Load())
}

// TestNotWhatItSays: an answer whose encoding is another than it says, or broken, is not read, and says so.
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
