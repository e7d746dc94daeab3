package usage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func says(s *Scanner) string {
	u, known, final := s.Usage()
	return fmt.Sprint(u, known, final, s.Text(), s.BadFields(), s.Ended())
}

// saysSoFar returns what a scanner has found, except the text. The text is counted only when a line ends or a caller
// asks for it.
func saysSoFar(s *Scanner) string {
	u, known, final := s.Usage()
	return fmt.Sprint(u, known, final, s.BadFields(), s.Ended())
}

// steps writes a piece in steps, as [Answer.Filter] does.
func steps(s *Scanner, p []byte) {
	for len(p) > 0 {
		n, _ := s.Step(p)
		p = p[n:]
	}
}

// parts has lines of streams. Each line has a place for a number and a text.
var parts = []string{
	`data: {"id":"c-%[1]d","created":%[1]d,"choices":[{"index":0,"delta":{"content":"%[2]s"},"finish_reason":null}],"usage":null}`,
	`data: {"id":"c-%[1]d","created":%[1]d,"choices":[{"index":0,"delta":{"content":"%[2]s"},"finish_reason":null}],"obfuscation":"%[2]s"}`,
	`data: {"id":"c-%[1]d","choices":[{"index":%[1]d,"delta":{},"finish_reason":"stop"}]}`,
	`data: {"id":"c-%[1]d","choices":[],"usage":{"prompt_tokens":%[1]d,"completion_tokens":7,"total_tokens":9}}`,
	`data: {"id":"c-%[1]d","choices":[],"usage":{"prompt_tokens":-%[1]d}}`,
	`data: {"type":"response.output_text.delta","sequence_number":%[1]d,"item_id":"m","delta":"%[2]s","logprobs":[]}`,
	`data: {"type":"content_block_delta","index":%[1]d,"delta":{"type":"text_delta","text":"%[2]s"}}`,
	`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":%[1]d}}`,
	`data: {"candidates":[{"content":{"parts":[{"text":"%[2]s"}]}}],"usageMetadata":{"promptTokenCount":%[1]d}}`,
	`data: {"choices":[{"delta":{"content":"%[2]s"}}]}{"choices":[{"delta":{"content":"%[2]s"}}]}`,
	`data: {"choices":[{"delta":{"content":"%[2]s"}}]} `, "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"%[2]s\"}}]}",
	"data: {\"a\":1,\rdata: \"choices\":[]}", `data:{"choices":[{"text":"%[2]s"}]}`, `data: [DONE]`, `: comment`, `event: x`, ``, ``, ``,
	`data: "%[2]s"`, `data: %[1]d`, `data: {"a":1e%[1]d}`, `data: {"a":01x}`,
}

func lineOf(r *rand.Rand, some []string) string {
	texts := []string{"", "a", " token", `a \"word\"`, `\u00e9`, "é", `\\`, "{", "a\rb", `\u0022}],\"`, strings.Repeat("long", 300)}
	part := some[r.IntN(len(some))]
	if !strings.Contains(part, "%") {
		return part
	}
	return strings.NewReplacer("%[1]d", fmt.Sprint(r.IntN(1000)), "%[2]s", texts[r.IntN(len(texts))]).Replace(part)
}

// TestShapes checks that comparing a line with the shape gives the same result as reading it byte by byte. It does so
// for lines in any order.
func TestShapes(t *testing.T) {
	compared := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		some := []string{parts[r.IntN(len(parts))], parts[r.IntN(len(parts))], "", parts[0]}
		ends := []string{"\n", "\r\n"}[r.IntN(2)]
		one, two := NewScanner("text/event-stream", Models), NewScanner("text/event-stream", Models)
		for range 60 {
			part := lineOf(r, some)
			line := []byte(part + ends)
			if data, is := bytes.CutPrefix(line, []byte("data:")); is {
				if _, _, ok := one.shape.matches(data, "", false); ok {
					compared++
				}
			}
			steps(one, line)
			for i := range line {
				steps(two, line[i:i+1])
			}
			require.Equal(t, says(two), says(one), "seed %d, after %q", seed, part)
			if ends == "\n" { // of "\r\n" the last byte begins an event
				require.Equal(t, two.UsageOnly(), one.UsageOnly(), "seed %d, after %q", seed, part)
			}
		}
	}
	assert.Greater(t, compared, 2000)
}

// TestShapesOfLines is [TestShapes] with lines of JSON.
func TestShapesOfLines(t *testing.T) {
	one, two := NewScanner("application/x-ndjson", Models), NewScanner("application/x-ndjson", Models)
	for i := range 20 {
		line := fmt.Appendf(nil, "{\"model\":\"m\",\"created_at\":\"2026-11-26T02:0%d\",\"response\":\"%s\",\"done\":%v,\"eval_count\":%s}\n",
			i, strings.Repeat("x", i), i > 15, map[bool]string{true: "5", false: "null"}[i > 15])
		_, _, known := one.shape.matches(line, "", false)
		assert.Equal(t, i > 0 && i < 16, known, i)
		one.Write(line)
		for i := range line {
			two.Write(line[i : i+1])
		}
		require.Equal(t, says(two), says(one))
	}
	assert.Equal(t, uint64(190), one.Text())
}

// TestShapesInPieces: lines come in pieces. After each piece, the result and the text are the same as if they were read
// byte by byte.
func TestShapesInPieces(t *testing.T) {
	held, resumed, runs := 0, 0, 0
	for seed := range uint64(800) {
		r := rand.New(rand.NewPCG(seed, 2))
		some := []string{parts[r.IntN(len(parts))], "", parts[0], parts[0], parts[0]}
		contentType := "text/event-stream"
		end := []string{
			"\n", "\r\n", "\n\n", "\n\n", "\r\n\r\n", "\n\nevent: delta\n", "\n: ping\n\n", "\n\n: \rdata: {\"usage\":{\"total_tokens\":-5}}\n",
			"\n\n\xef\xbb\xbfdata: {\"usage\":{\"total_tokens\":-5}}\n",
		}[r.IntN(9)]
		if r.IntN(4) == 0 {
			contentType, end = "application/x-ndjson", "\n"
		}
		var stream []byte
		for range 60 {
			part := lineOf(r, some)
			if end == "\n" && contentType != "text/event-stream" {
				part = strings.TrimPrefix(part, "data: ")
			}
			stream = append(stream, part+end...)
		}
		one, two := NewScanner(contentType, Models), NewScanner(contentType, Models)
		longest := 1 + r.IntN([]int{600, 4000}[r.IntN(2)])
		for at := 0; at < len(stream); {
			piece := stream[at:min(len(stream), at+1+r.IntN(longest))]
			was := len(one.shape.pending)
			write := []func(*Scanner, []byte){(*Scanner).Write, steps}[seed%2]
			write(one, piece)
			for i := range piece {
				write(two, piece[i:i+1])
			}
			at += len(piece)
			if len(one.shape.pending) > 0 {
				held++
			}
			if was > 0 && one.shape.known {
				resumed++
			}
			if len(one.shape.separator) > 0 {
				runs++
			}
			require.Equal(t, saysSoFar(two), saysSoFar(one), "seed %d, at %d of %q", seed, at, stream)
			if seed%2 == 1 && strings.HasPrefix(end, "\n") { // of "\r\n" the last byte begins an event
				require.Equal(t, two.UsageOnly(), one.UsageOnly(), "seed %d, at %d of %q", seed, at, stream)
			}
			if r.IntN(8) == 0 {
				require.Equal(t, two.Text(), one.Text(), "seed %d, at %d of %q", seed, at, stream)
			}
		}
		one.End()
		two.End()
		require.Equal(t, says(two), says(one), "seed %d", seed)
	}
	assert.Greater(t, held, 500)
	assert.Greater(t, resumed, 500)
	assert.Greater(t, runs, 500)
}

// TestNumbersOfShapes: if a text is not a number in JSON, it is not read as a number.
func TestNumbersOfShapes(t *testing.T) {
	for _, number := range []string{"e5", "+5", ".5", "", "-", "1-2"} {
		one, two := NewScanner("text/event-stream", Models), NewScanner("text/event-stream", Models)
		for _, n := range []string{"1", "2", number} {
			line := []byte("data: {\"created\":" + n + ",\"choices\":[{\"text\":\"four\"}]}\n\n")
			one.Write(line)
			for i := range line {
				two.Write(line[i : i+1])
			}
		}
		assert.Equal(t, says(two), says(one), number)
	}
}

// TestFilter: a stream comes in any pieces. A client gets all its events except those that were added for the usage. It
// gets an event as soon as the event is complete.
func TestFilter(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		a := NewAnswer("text/event-stream", "", Models)
		var stream, want, got []byte
		var ends []int  // of the events in stream
		var known []int // bytes of want up to there
		for range 1 + r.IntN(40) {
			event, hidden := strings.Replace(parts[0], "%[2]s", strings.Repeat("x", r.IntN(300)), 1), r.IntN(5) == 0
			if hidden {
				event = parts[3]
			}
			event = strings.ReplaceAll(event, "%[1]d", fmt.Sprint(r.IntN(1000))) + "\n\n"
			if stream = append(stream, event...); !hidden {
				want = append(want, event...)
			}
			ends, known = append(ends, len(stream)), append(known, len(want))
		}
		want = append(want, "data: [DONE]"...)
		stream = append(stream, "data: [DONE]"...)
		longest := 1 + r.IntN([]int{1000, 4000}[r.IntN(2)])
		for at := 0; at < len(stream); {
			piece := stream[at:min(len(stream), at+1+r.IntN(longest))]
			if end := bytes.LastIndex(piece, []byte("}\n")); end > 0 && r.IntN(2) == 0 {
				piece = piece[:end+2] // the event is complete except for the empty line
			}
			got = append(got, a.Filter(piece)...)
			at += len(piece)
			complete := 0
			for i, end := range ends {
				if end <= at {
					complete = known[i]
				}
			}
			require.Equal(t, string(want[:complete]), string(got), "seed %d, at %d of %q", seed, at, stream)
		}
		a.End()
		require.Equal(t, string(want), string(append(got, a.Remaining()...)), "seed %d", seed)
	}
}

// sameAsBytes checks that a stream in pieces gives the same result as byte by byte. Byte by byte, no line is compared
// with a shape. The result run reports whether several texts were read in one go.
func sameAsBytes(t *testing.T, stream []byte, size int) (run bool) {
	one, two := NewScanner("text/event-stream", Models), NewScanner("text/event-stream", Models)
	for at := 0; at < len(stream); at += size {
		piece := stream[at:min(len(stream), at+size)]
		one.Write(piece)
		for i := range piece {
			two.Write(piece[i : i+1])
		}
		run = run || len(one.shape.varying) == 1 && len(one.shape.separator) > 0
		require.Equal(t, saysSoFar(two), saysSoFar(one), "at %d of %q in pieces of %d", at, stream, size)
	}
	one.End()
	two.End()
	require.Equal(t, says(two), says(one), "%q in pieces of %d", stream, size)
	return run
}

// TestTexts: if events differ only in their text, reading them at once gives the same result as byte by byte. This is
// true even if any byte is changed.
func TestTexts(t *testing.T) {
	runs := 0
	for seed := range uint64(250) {
		r := rand.New(rand.NewPCG(seed, 4))
		end := []string{"\n\n", "\r\n\r\n", "\n\nevent: delta\n", "\n\nid: 7\nevent: delta\n"}[r.IntN(4)]
		some := []string{
			`data: {"id":"c","choices":[{"index":0,"delta":{"content":"%[2]s"},"finish_reason":null}],"usage":null}`,
			`data: {"choices":[{"text":"%[2]s"}],"usage":{"prompt_tokens":null}}`, `data: {"delta":"%[2]s"}`,
		}[r.IntN(3)]
		var stream []byte
		for range 40 {
			line := lineOf(r, []string{some})
			if r.IntN(20) == 0 {
				line = lineOf(r, parts)
			}
			stream = append(stream, line+end...)
		}
		for range r.IntN(4) {
			stream[r.IntN(len(stream))] = "\"\\\n\r\x00\xef{}[]:,u0 "[r.IntN(15)]
		}
		if sameAsBytes(t, stream, 1+r.IntN(4000)) {
			runs++
		}
	}
	assert.Greater(t, runs, 75)
}

// FuzzTexts does what [TestTexts] does, with random texts and random bytes between them.
func FuzzTexts(f *testing.F) {
	f.Add([]byte("a\xff b\xff\xffc\\n\xff\\u0041\xfflong, longer"), []byte(`"}]}`+"\n\ndata: "+`{"choices":[{"text":"`), 4000)
	f.Add([]byte("a\xffb\xffc\xff"), []byte(`"}],"usage":{"total_tokens":5}}`+"\n\ndata: "+`{"choices":[{"text":"`), 100)
	f.Add([]byte("a\xffb\xff\",\"us\\u0061ge\":{\"total_tokens\":5},\"a\":\"\xffd"), []byte("\"}\r\n\r\ndata:{\"delta\":\""), 77)
	f.Fuzz(func(t *testing.T, texts, between []byte, size int) {
		stream := bytes.ReplaceAll(texts, []byte{0xff}, between)
		if len(stream) < 1<<16 {
			sameAsBytes(t, append([]byte(`data: {"choices":[{"text":"`), stream...), min(max(size, 1), 1<<16))
		}
	})
}
