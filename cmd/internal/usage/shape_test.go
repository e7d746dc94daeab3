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

// says is all that a scanner has found.
func says(s *Scanner) string {
	u, known, final := s.Usage()
	return fmt.Sprint(u, known, final, s.Text(), s.Bad(), s.Ended())
}

// TestShapes: lines that are compared with the line before say what they say byte by byte, where no line is compared:
// after each line, for lines in any order.
func TestShapes(t *testing.T) {
	parts := []string{
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
	texts := []string{"", "a", " token", `a \"word\"`, `\u00e9`, "é", `\\`, "{", "a\rb"}
	compared := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		some := []string{parts[r.IntN(len(parts))], parts[r.IntN(len(parts))], "", parts[0]}
		ends := []string{"\n", "\r\n"}[r.IntN(2)]
		one, two := NewScanner("text/event-stream", Models), NewScanner("text/event-stream", Models)
		for range 60 {
			part := some[r.IntN(len(some))]
			if strings.Contains(part, "%") {
				n := r.IntN(1000)
				text := texts[r.IntN(len(texts))]
				part = strings.NewReplacer("%[1]d", fmt.Sprint(n), "%[2]s", text).Replace(part)
			}
			line := []byte(part + ends)
			if data, is := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:")); is {
				if _, ok := one.shape.matches(data); ok {
					compared++
				}
			}
			one.Write(line)
			for i := range line {
				two.Write(line[i : i+1])
			}
			require.Equal(t, says(two), says(one), "seed %d, after %q", seed, part)
			if ends == "\n" { // of "\r\n" the last byte begins an event
				require.Equal(t, two.UsageOnly(), one.UsageOnly(), "seed %d, after %q", seed, part)
			}
		}
	}
	assert.Greater(t, compared, 2000)
}

// TestShapesOfLines is [TestShapes] of lines of JSON.
func TestShapesOfLines(t *testing.T) {
	one, two := NewScanner("application/x-ndjson", Models), NewScanner("application/x-ndjson", Models)
	for i := range 20 {
		line := fmt.Appendf(nil, "{\"model\":\"m\",\"created_at\":\"2026-11-26T02:0%d\",\"response\":\"%s\",\"done\":%v,\"eval_count\":%s}\n",
			i, strings.Repeat("x", i), i > 15, map[bool]string{true: "5", false: "null"}[i > 15])
		_, known := one.shape.matches(line[:len(line)-1])
		assert.Equal(t, i > 0 && i < 16, known, i)
		one.Write(line)
		for i := range line {
			two.Write(line[i : i+1])
		}
		require.Equal(t, says(two), says(one))
	}
	assert.Equal(t, uint64(190), one.Text())
}
