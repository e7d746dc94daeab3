package usage

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHostileUsage (pitfall 28 of docs/budgets.md): a field of a usage counts as absent if its value is not a whole
// number from 0 to 10^7. Bad counts such fields.
func TestHostileUsage(t *testing.T) {
	for _, bad := range []string{
		"-600", `"2147483647"`, "9223372036854775807", "10000001", "1e3", "12.0", "1.5", "true", "-0", "18446744073709551616",
		strings.Repeat("9", 400),
	} {
		s := NewScanner("application/json", Models)
		s.Write([]byte(`{"usage":{"prompt_tokens":` + bad + `,"completion_tokens":20}}`))
		s.End()
		u, known, _ := s.Usage()
		assert.True(t, known, bad)
		assert.Equal(t, Usage{Output: 20, Total: 20, NoInput: true}, u, bad)
		assert.Equal(t, uint64(1), s.BadFields(), bad)
	}
	for _, absent := range []string{"null", "{}", "[]", "[5]", `{"a":5}`} {
		s := NewScanner("application/json", Models)
		s.Write([]byte(`{"usage":{"prompt_tokens":` + absent + `,"completion_tokens":20}}`))
		s.End()
		u, _, _ := s.Usage()
		assert.Equal(t, Usage{Output: 20, Total: 20, NoInput: true}, u, absent)
		assert.Zero(t, s.BadFields(), absent)
	}
	for _, broken := range []string{"NaN", "Infinity", "nil", "\x00", "'5'", "truefalse"} {
		s := NewScanner("application/json", Models)
		s.Write([]byte(`{"usage":{"prompt_tokens":` + broken + `,"completion_tokens":20}}`))
		s.End()
		_, known, final := s.Usage()
		assert.False(t, known || final, broken)
	}
	// Without any one of these fields, the cost would be too low.
	for _, f := range []string{"completion_tokens", "cache_read_input_tokens", "total_tokens"} {
		s := NewScanner("application/json", Models)
		s.Write([]byte(`{"usage":{"prompt_tokens":5,"` + f + `":20000000}}`))
		s.End()
		u, known, final := s.Usage()
		assert.Equal(t, Usage{Input: 5, Total: 5}, u, f)
		assert.True(t, known && !final, f)
	}
	s := NewScanner("application/json", Models)
	s.Write([]byte(`{"usage":{"prompt_tokens":5,"completion_tokens":7},"usage":{"prompt_tokens":6,"prompt_tokens":-1}}`))
	s.End()
	u, _, _ := s.Usage()
	assert.Equal(t, Usage{Input: 6, Output: 7, Total: 13}, u, "twice: of each field the last that is one")
}

// TestUsageOfABrokenDocument (pitfall 18): a document breaks off, or stops being JSON. The usage before that place is
// known. Another document may follow.
func TestUsageOfABrokenDocument(t *testing.T) {
	whole := `{"usage":{"prompt_tokens":5,"completion_tokens":700}}`
	cost, err := Path("usage.completion_tokens")
	require.NoError(t, err)
	for _, fields := range []*Fields{Models, cost} {
		for n := range len(whole) {
			s := NewScanner("application/json", fields)
			s.Write([]byte(whole[:n]))
			s.End()
			_, _, final := s.Usage()
			assert.False(t, final, "%q", whole[:n])

			s = NewScanner("text/event-stream", fields)
			s.Write([]byte("data: " + whole[:n] + "\n\ndata: [DONE]\n\n"))
			_, _, final = s.Usage()
			assert.False(t, final, "%q", whole[:n])
			s.Write([]byte("data: " + whole + "\n\ndata: [DONE]\n\n"))
			u, _, final := s.Usage()
			assert.Equal(t, uint64(700), max(u.Output, u.Cost), "%q", whole[:n])
			assert.True(t, final, "%q", whole[:n])
		}
	}
}

// TestNotAtItsPath (pitfall 29): if a usage is at another path, it is ignored.
func TestNotAtItsPath(t *testing.T) {
	for _, body := range []string{
		`{"choices":[{"message":{"content":"{\"usage\":{\"total_tokens\":5}}","usage":{"total_tokens":5}}}]}`,
		`{"usag\u0065x":{"total_tokens":5}}`, `{"content":[{"type":"tool_use","input":{"usage":{"input_tokens":5}}}]}`,
		`{"a":{"usage":{"total_tokens":5}}}`, `{"usage":[{"total_tokens":5}]}`, `"usage"`, `{"Usage":{"total_tokens":5}}`,
		"data: {\"usage\":{\"total_tokens\":5}}",
	} {
		s := NewScanner("application/json", Models)
		s.frames.framing = wholeBody
		s.Write([]byte(body))
		s.End()
		_, known, _ := s.Usage()
		assert.False(t, known, body)
	}
	s := NewScanner("application/json", Models)
	s.Write([]byte(`{"us\u0061ge":{"total_tokens":5}}`))
	s.End()
	u, _, _ := s.Usage()
	assert.Equal(t, uint64(5), u.Total, "an escape is the same key")
}

// TestEndlessLine (pitfall 26): endless lines, keys, numbers and nesting do not use more memory. The scanner reads what
// comes after them.
func TestEndlessLine(t *testing.T) {
	const megabytes = 8
	piece := func(unit string) []byte { return []byte(strings.Repeat(unit, 1<<20/len(unit))) }
	for _, unit := range []string{"x", " ", `\"`, `\u0041`, `"`, `{"a":`, "[", "9", "data: ", ":", "\x00", "\n", "\r", "{},"} {
		s := NewScanner("text/event-stream", Models)
		var before, after runtime.MemStats
		p := piece(unit)
		runtime.ReadMemStats(&before)
		s.Write([]byte(`data: {"choices":[{"delta":{"content":"`))
		for range megabytes {
			s.Write(p)
		}
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(Memory), unit)
		s.Write([]byte("\n\ndata: {\"choices\":[],\"usage\":{\"total_tokens\":5}}\n\n"))
		u, _, final := s.Usage()
		assert.True(t, final, unit)
		assert.Equal(t, uint64(5), u.Total, unit)
	}
}

// TestMemory: 10,000 streams are read, each up to the middle of an event. They use at most the memory that the document
// states.
func TestMemory(t *testing.T) {
	const streams = 10_000
	require.Less(t, unsafe.Sizeof(Scanner{}), uintptr(4<<10))
	all := make([]*Answer, streams)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	piece := []byte("data: {\"choices\":[{\"delta\":{\"content\":\"" + strings.Repeat("long ", 100))
	for i := range all {
		all[i] = NewAnswer("text/event-stream", "", Models)
		for range 10 {
			all[i].Write(piece)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapAlloc - before.HeapAlloc) / streams
	t.Logf("%d bytes a stream", each)
	assert.Less(t, each, uint64(Memory))
	runtime.KeepAlive(all)
}

// TestPath: a path names a field of any other API.
func TestPath(t *testing.T) {
	f, err := Path("meta.usage.total")
	require.NoError(t, err)
	s := NewScanner("application/json", f)
	s.Write([]byte(`{"usage":{"total_tokens":1},"meta":{"usage":{"total":17}}}`))
	s.End()
	u, known, final := s.Usage()
	assert.True(t, known && final)
	assert.Equal(t, uint64(17), u.Cost)
	for _, bad := range []string{"", "a..b", ".a", "a.b.c.d.e.f.g.h.i", strings.Repeat("k", 200)} {
		_, err := Path(bad)
		assert.Error(t, err, bad)
	}
}

func TestWeights(t *testing.T) {
	u := Usage{Input: 100, Cached: 40, CacheWrite: 10, Output: 7, Total: 120}
	assert.Equal(t, uint64(120), Total.Cost(u))
	assert.Equal(t, uint64(100), InputOnly.Cost(u))
	assert.Equal(t, uint64(7), OutputOnly.Cost(u))
	assert.Equal(t, uint64(50*3+4+13+7*15), Weights{3000, 100, 1250, 15000}.Cost(u), "12.5 is rounded up")
	for _, w := range []Weights{Total, InputOnly, OutputOnly, {3000, 100, 1250, 15000}, {100, 3000, 0, 0}} {
		for set := range uint16(1 << numCounts) {
			r := raw{}
			for f := range numCounts {
				if set>>f&1 != 0 {
					r.set(f, MaxField)
				}
			}
			require.LessOrEqual(t, w.Cost(r.usage()), w.MaxCost(), "%v %b", w, set)
		}
	}
	assert.Equal(t, uint64(6*MaxField), Total.MaxCost())
	assert.Equal(t, uint64(1<<64-1), Weights{1 << 50, 0, 0, 0}.Cost(Usage{Input: MaxField * 1000}))
}

// FuzzScanner checks that no input makes the scanner panic. It also checks that the result does not depend on how the
// input is cut into pieces.
func FuzzScanner(f *testing.F) {
	for _, c := range Corpus() {
		f.Add(c.ContentType, c.Body, 7)
	}
	f.Fuzz(func(t *testing.T, contentType string, body []byte, cut int) {
		one, two := NewScanner(contentType, Models), NewScanner(contentType, Models)
		one.Write(body)
		cut = min(max(cut, 0), len(body))
		two.Write(body[:cut])
		for i := cut; i < len(body); i++ {
			two.Write(body[i : i+1])
		}
		one.End()
		two.End()
		u1, known1, final1 := one.Usage()
		u2, known2, final2 := two.Usage()
		require.Equal(t, fmt.Sprint(u1, known1, final1, one.Text(), one.BadFields()), fmt.Sprint(u2, known2, final2, two.Text(), two.BadFields()))
		require.LessOrEqual(t, u1.Total, uint64(8*MaxField))
		q := ReadRequest(body, int64(len(body)), nil)
		q.Output(10)
	})
}

// BenchmarkScan scans a stream of 200 events, in one piece and in several pieces. The text of every tenth event has an
// escape.
func BenchmarkScan(b *testing.B) {
	var events [][]byte
	for i := range 200 {
		text := fmt.Sprintf(" token%d", i*i%1000)
		if i%10 == 0 {
			text = `.\n\n`
		}
		events = append(events, fmt.Appendf(nil, "data: {\"id\":\"chatcmpl-123456789\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"tiny-model\","+
			"\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n", text))
	}
	whole := bytes.Join(events, nil)
	var pieces [][]byte
	for p := range slices.Chunk(whole, 1000) {
		pieces = append(pieces, p)
	}
	for name, writes := range map[string][][]byte{"events": events, "pieces": pieces, "large pieces": slices.Collect(slices.Chunk(whole, 4000))} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := NewScanner("text/event-stream", Models)
				for _, p := range writes {
					s.Write(p)
				}
			}
		})
	}
}
