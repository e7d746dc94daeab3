package metering

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// metersWith returns the meters of one rule, and their room. In the tests, the client of a request is its Host.
func metersWith(t *testing.T, tokens rulefile.Tokens) (*Meters, *room) {
	states := &States{}
	tokens.API = rulefile.APIAuto
	rule := &rulefile.Rule{Name: "a", Tokens: &tokens}
	m, err := NewMeter(rule, func(*http.Request) bool { return true }, states)
	require.NoError(t, err)
	return NewMeters([]*Meter{m}, states, func(r *http.Request) netip.Prefix {
		if addr, err := netip.ParseAddr(r.Host); err == nil {
			return netip.PrefixFrom(addr, addr.BitLen())
		}
		return netip.Prefix{}
	}), &states.room
}

func asks(client string, body io.Reader) *http.Request {
	r := httptest.NewRequest("POST", "/v1/chat/completions", body)
	r.Host = client
	return r
}

func letters(n int) io.Reader { return strings.NewReader(strings.Repeat("a", n)) }

// TestRoom: all bodies together use at most the memory in maxRoom, and give it back.
func TestRoom(t *testing.T) {
	ms, in := metersWith(t, rulefile.Tokens{MaxBody: 1 << 20})
	in.used.Store(maxRoom - 64<<10)
	_, _, err := ms.Read(asks("", letters(100<<10)))
	assert.ErrorIs(t, err, ErrNoRoom)
	assert.Equal(t, int64(maxRoom-64<<10), in.used.Load(), "what it had taken comes back")
	in.used.Store(0)
	_, done, err := ms.Read(asks("", letters(100<<10)))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, in.used.Load(), int64(100<<10))
	assert.LessOrEqual(t, in.used.Load(), int64(128<<10))
	done()
	assert.Zero(t, in.used.Load())

	for range 10_000 { // these are all in progress at the same time
		_, _, err := ms.Read(asks("", letters(2<<10)))
		require.NoError(t, err)
	}
	assert.Less(t, in.used.Load(), int64(10_000*(4<<10)))
}

// A stalled is a reader that stops after its bytes: it sends to the channel stalls, and waits for the channel end.
type stalled struct {
	io.Reader
	stalls, end chan struct{}
}

func (s *stalled) Read(into []byte) (int, error) {
	if n, err := s.Reader.Read(into); err == nil {
		return n, nil
	}
	s.stalls <- struct{}{}
	<-s.end
	return 0, io.ErrUnexpectedEOF
}

// TestStalledBodies: the parts of stalled bodies use no more memory than is counted for them.
func TestStalledBodies(t *testing.T) {
	ms, in := metersWith(t, rulefile.Tokens{MaxBody: 8 << 20})
	for name, length := range map[string]int64{"its length is known": 8 << 20, "in chunks": -1} {
		t.Run(name, func(t *testing.T) {
			const n, size = 10, 4300 << 10
			stalls, end, over := make(chan struct{}), make(chan struct{}), make(chan error)
			text := strings.Repeat("a", size)
			before := heap()
			for range n {
				go func() {
					r := asks("", &stalled{strings.NewReader(text), stalls, end})
					r.ContentLength = length
					_, done, err := ms.Read(r)
					over <- err
					<-end
					done()
					over <- nil
				}()
				<-stalls
			}
			assert.LessOrEqual(t, heap()-before, in.used.Load()+256<<10)
			assert.LessOrEqual(t, in.used.Load(), int64(n*(size+64<<10)))
			close(end)
			for range 2 * n {
				assert.NoError(t, <-over)
			}
			assert.Zero(t, in.used.Load())
			runtime.KeepAlive(text)
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestBuffersAreClaimedBeforeTheyAreMade: a buffer without room is not allocated.
func TestBuffersAreClaimedBeforeTheyAreMade(t *testing.T) {
	const mib = 1 << 20
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = fmt.Fprintf(z, `{"prompt":"%s"}`, strings.Repeat("a", 6*mib))
	_ = z.Close()
	object := func(members string) string {
		return `{"prompt":"` + strings.Repeat("a", mib-len(members)-len(`{"prompt":""}`)) + `"` + members + `}`
	}
	for name, c := range map[string]struct {
		tokens   rulefile.Tokens
		body     string
		encoding string
		left     int64 // how many bytes of room are left; all of them may be allocated
	}{
		"a body":                      {body: strings.Repeat("a", 6*mib), left: mib},
		"a body, when it is whole":    {body: strings.Repeat("a", mib), left: mib},
		"what a body decompresses to": {body: packed.String(), encoding: "gzip", left: mib},
		"a body that asks for the usage": {tokens: rulefile.Tokens{AskUsage: true}, body: object(`,"stream":true`),
			left: 2 * mib},
		"a body whose bound is lowered": {tokens: rulefile.Tokens{Clamp: true}, body: object(`,"max_tokens":100`),
			left: 2 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			c.tokens.MaxBody = 8 * mib
			ms, in := metersWith(t, c.tokens)
			r := asks("", strings.NewReader(c.body))
			r.Header.Set("Content-Encoding", c.encoding)
			in.used.Store(maxRoom - c.left)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := ms.Read(r)
			runtime.ReadMemStats(&after)
			assert.ErrorIs(t, err, ErrNoRoom)
			assert.LessOrEqual(t, int64(after.TotalAlloc-before.TotalAlloc), c.left+256<<10)
			assert.Equal(t, maxRoom-c.left, in.used.Load())

			in.used.Store(0)
			r = asks("", strings.NewReader(c.body))
			r.Header.Set("Content-Encoding", c.encoding)
			_, done, err := ms.Read(r)
			require.NoError(t, err)
			done()
			assert.Zero(t, in.used.Load())
		})
	}
}

// TestAskingInACompressedBody: when include_usage is inserted into a compressed body, the body is passed on
// uncompressed. It then counts with its uncompressed size.
func TestAskingInACompressedBody(t *testing.T) {
	const size = 1 << 20
	begin := `{"prompt":"` + strings.Repeat("a", size) + `","stream":true`
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, begin+"}")
	_ = z.Close()
	for _, clamp := range []bool{false, true} {
		ms, in := metersWith(t, rulefile.Tokens{MaxBody: 8 << 20, AskUsage: true, Clamp: clamp})
		r := asks("", bytes.NewReader(packed.Bytes()))
		r.Header.Set("Content-Encoding", "gzip")
		r.Header.Set("Content-Length", "1")
		r, done, err := ms.Read(r)
		require.NoError(t, err)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		assert.True(t, string(body) == begin+`,"stream_options":{"include_usage":true}}`)
		assert.Equal(t, int64(len(body)), r.ContentLength)
		assert.NotContains(t, r.Header, "Content-Encoding")
		assert.NotContains(t, r.Header, "Content-Length")
		spare := requestOf(r).memory.spare
		assert.Equal(t, clamp, spare > 0)
		assert.GreaterOrEqual(t, in.used.Load()-spare, int64(len(body)))
		assert.LessOrEqual(t, in.used.Load()-spare, int64(size+16<<10))
		done()
		assert.Zero(t, in.used.Load())
	}
}

// TestShareOfAClient: one client's bodies of more than 64 KiB together use at most an eighth of the room. If the client
// has only one such body, this body may use more.
func TestShareOfAClient(t *testing.T) {
	ms, in := metersWith(t, rulefile.Tokens{MaxBody: 64 << 20})
	const ann, bob, nobody = "192.0.2.1", "192.0.2.2", "unix"
	var all []func()
	read := func(client string, size int) error {
		_, done, err := ms.Read(asks(client, letters(size)))
		all = append(all, done)
		return err
	}
	over := func() {
		for _, done := range all {
			done()
		}
		all = nil
		assert.Zero(t, in.used.Load())
		assert.Empty(t, in.shares)
	}
	for range 4 {
		require.NoError(t, read(ann, 8<<20-1))
	}
	held := in.used.Load()
	assert.ErrorIs(t, read(ann, 64<<10+1), ErrShare)
	assert.ErrorIs(t, read(ann, 8<<20), ErrShare)
	assert.Equal(t, held, in.used.Load(), "what they had taken comes back")
	for range 100 {
		require.NoError(t, read(ann, 64<<10-1), "small bodies are exempt")
	}
	require.NoError(t, read(bob, 64<<20), "a body alone may be larger than a share")
	assert.ErrorIs(t, read(bob, 100<<10), ErrShare)
	over()
	require.NoError(t, read(ann, 100<<10))
	assert.ErrorIs(t, read(ann, 64<<20), ErrShare, "it is not alone")
	over()
	for range 5 {
		require.NoError(t, read(nobody, 8<<20), "many clients come over a Unix socket")
	}
	over()
}

// TestManyBounds: if a body has more than 64 bounds, it is not changed. Each edit would need memory.
func TestManyBounds(t *testing.T) {
	ms, _ := metersWith(t, rulefile.Tokens{MaxBody: 8 << 20, Clamp: true})
	for n, cuttable := range map[int]bool{1: true, maxBounds: true, maxBounds + 1: false, 100_000: false} {
		body := `{"prompt":"hello"` + strings.Repeat(`,"max_tokens":9`, n) + "}"
		r, done, err := ms.Read(asks("", strings.NewReader(body)))
		require.NoError(t, err)
		assert.Equal(t, cuttable, requestOf(r).canClamp(), "%d", n)
		done()
	}
}

// BenchmarkReadSmall measures Meters.Read for a body of 2 KiB.
func BenchmarkReadSmall(b *testing.B) {
	states := &States{}
	rule := &rulefile.Rule{Name: "a", Tokens: &rulefile.Tokens{API: rulefile.APIAuto, MaxBody: 8 << 20}}
	m, err := NewMeter(rule, func(*http.Request) bool { return true }, states)
	require.NoError(b, err)
	ms := NewMeters([]*Meter{m}, states, func(*http.Request) netip.Prefix { return netip.Prefix{} })
	body := strings.NewReader(strings.Repeat("a", 2<<10))
	r := httptest.NewRequest("POST", "/v1/chat/completions", body)
	in := r.Body
	for _, length := range []int64{2 << 10, -1} {
		b.Run(fmt.Sprint(length), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = body.Seek(0, io.SeekStart)
				r.Body, r.ContentLength = in, length
				_, done, err := ms.Read(r)
				require.NoError(b, err)
				done()
			}
		})
	}
}
