package usage

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func ask(body string) *Request { return askOf(ofChat, body) }

func askOf(of *Bounds, body string) *Request {
	q := ReadRequest([]byte(body), int64(len(body)), of)
	return &q
}

// These are the bounds of some servers.
var (
	ofChat     = &Bounds{Fields: [][]string{{"max_completion_tokens"}, {"max_tokens"}}}
	ofResponse = &Bounds{Fields: [][]string{{"max_output_tokens"}}}
	ofGemini   = &Bounds{Object: []string{"generationConfig", "generation_config"}, Fields: [][]string{{"maxOutputTokens", "max_output_tokens"}}}
	ofConverse = &Bounds{Object: []string{"inferenceConfig"}, Fields: [][]string{{"maxTokens"}}}
	ofOllama   = &Bounds{Object: []string{"options"}, Fields: [][]string{{"num_predict"}}}
	ofBatch    = &Bounds{Batch: true}
)

// TestBounds (pitfalls 6, 7, 9, 40 of docs/budgets.md): if a request has several bounds, the largest counts, times the
// number of answers. If a server may ignore a bound, this bound does not lower the result.
func TestBounds(t *testing.T) {
	const standard = 1024
	for _, c := range []struct {
		of   *Bounds
		body string
		own  uint64
		want uint64
	}{
		{ofChat, `{}`, 0, standard},
		{ofChat, `{"max_tokens":5}`, 5, 5},
		{ofChat, `{"max_tokens":999999999}`, MaxField, MaxField},
		{ofChat, `{"max_tokens":1e300}`, MaxField, MaxField},
		{ofChat, `{"max_tokens":0}`, 0, standard},
		{ofChat, `{"max_tokens":-1}`, 0, standard},
		{ofChat, `{"max_tokens":null}`, 0, standard},
		{ofChat, `{"max_tokens":70.0}`, 70, 70},
		{ofChat, `{"max_tokens":070}`, 0, standard}, // not JSON
		{ofChat, `{"max_tokens":70.}`, 0, standard},
		{ofChat, `{"max_tokens":7_0}`, 0, standard},
		{ofChat, `{"max\u005ftokens":70}`, 70, 70},
		{ofChat, `{"a":{"max_tokens":70}}`, 0, standard},
		{ofChat, `{"max_tokens":1,"max_completion_tokens":100000}`, 100000, 100000},
		{ofChat, `{"max_tokens":null,"max_completion_tokens":9}`, 9, 9},
		{ofChat, `{"max_tokens":9,"max_tokens":1}`, 9, 9},
		{ofChat, `{"max_tokens":1,"max_tokens":9}`, 9, 9},
		{ofChat, `{"max_tokens":10,"n":4}`, 10, 40},
		{ofChat, `{"max_tokens":10,"n":2,"best_of":5}`, 10, 50},
		{ofChat, `{"max_tokens":10,"n":1000000000}`, 10, 10 * maxTimes},
		{ofChat, `{"max_tokens":10,"n":-4}`, 10, 10},
		{ofChat, `{"max_tokens":10,"prompt":["a","b","c"]}`, 10, 30}, // each prompt of a list gets its own answers
		{ofChat, `{"max_tokens":10,"n":2,"prompt":[[1,2],[3],[4]]}`, 10, 60},
		{ofChat, `{"prompt_embeds":["a","b"],"n":2}`, 0, 4 * standard},
		{ofChat, `{"max_tokens":10,"prompt":[1,2,3]}`, 10, 10}, // one prompt, of three tokens
		{ofChat, `{"max_tokens":10,"prompt":[]}`, 10, 10},
		{ofResponse, `{"max_output_tokens":6}`, 6, 6},
		{ofGemini, `{"generationConfig":{"maxOutputTokens":7,"candidateCount":3}}`, 7, 21},
		{ofGemini, `{"generation_config":{"max_output_tokens":7}}`, 7, 7},
		{ofConverse, `{"inferenceConfig":{"maxTokens":8}}`, 8, 8},
		{ofOllama, `{"options":{"num_predict":9}}`, 9, 9},
		{ofOllama, `{"options":{"num_predict":-1}}`, 0, standard},

		{nil, `{"max_tokens":5}`, 0, standard}, // the server is unknown
		{nil, `{"max_tokens":5000}`, 0, 5000},
		{ofResponse, `{"max_tokens":5}`, 0, standard},
		{ofChat, `{"MAX_tokens":70}`, 0, standard},
		{ofChat, `{"MAX_tokens":7000}`, 0, 7000},
		{ofChat, `{"max_tokens":"70"}`, 0, standard}, // a server may ignore a bound that is a text
		{ofChat, `{"max_tokens":"7000"}`, 0, 7000},
		{ofChat, `{"max_tokens":true}`, 0, standard},
		{ofChat, `{"max_tokens":[1]}`, 0, standard},
		{ofChat, `{"num_predict":1}`, 0, standard},
		{ofChat, `{"max_tokens":5,"num_predict":5000}`, 5, 5000},
		{ofChat, `{"max_tokens":5,"num_predict":null}`, 5, 5},
		{ofChat, `{"max_tokens":5,"n_predict":-1}`, 0, standard}, // llama.cpp obeys n_predict instead
		{ofChat, `{"max_tokens":null,"num_predict":1}`, 0, standard},
		{ofChat, `{"max_tokens":5,"MAX_TOKENS":5000}`, 5000, 5000}, // a server may ignore the case
		{ofChat, `{"max_tokens":5,"MAX_TOKENS":null}`, 0, standard},
		{ofChat, `{"max_tokens":5,"max_to\u212aens":null}`, 0, standard},
		{ofChat, `{"max_tokens":5,"max_token\u017f":5000}`, 5000, 5000},
		{ofChat, "{\"max_tokens\":5,\"max_token\u017f\":5000}", 5000, 5000},
		{ofChat, `{"max_tokens":1,"max_tokens":null}`, 0, standard},
		{ofChat, `{"max_tokens":null,"max_tokens":1}`, 0, standard},
		{ofChat, `{"max_tokens":70} trailer`, 0, standard}, // a body like this may be read in several ways
		{ofChat, `{}{"max_tokens":1}`, 0, standard},
		{ofChat, `{"max_tokens":1,"a":NaN,"max_tokens":5000}`, 0, standard},
		{ofChat, `{"max_tokens":1`, 0, standard},
		{ofGemini, `{"generationconfig":{"maxOutputTokens":7}}`, 0, standard},
		{ofGemini, `{"generationConfig":{"maxoutputtokens":7}}`, 0, standard},
		{ofGemini, `{"generationConfig":{"maxOutputTokens":7},"generationConfig":{}}`, 0, standard},
		{ofGemini, `{"generationConfig":{"maxOutputTokens":7},"generation_config":{}}`, 0, standard},
		{ofGemini, `{"generationConfig":{"maxOutputTokens":7,"max_output_tokens":null}}`, 0, standard},
		{ofOllama, `{"options":{"num_predict":1},"OPTIONS":null}`, 0, standard},
		{ofOllama, `{"num_predict":1}`, 0, standard},
		{ofOllama, `{"options":[{"num_predict":1}]}`, 0, standard},

		{ofBatch, `{"requests":[{"params":{"max_tokens":10}},{"params":{"max_tokens":30}},{"params":{}}]}`, 0, 40 + standard},
		{ofBatch, `{"requests":[{"params":{"max_tokens":1,"max_completion_tokens":1}},{"params":{}}]}`, 0, 1 + standard},
		{ofBatch, `{"requests":[{"params":{"max_tokens":1,"max_tokens":1}},{},{}]}`, 0, 1 + 2*standard},
		{ofBatch, `{"requests":[{"params":{"MAX_TOKENS":1}},{"body":{"max_tokens":1}},{"max_tokens":1}]}`, 0, 2 + 3*standard},
		{ofBatch, `{"requests":[{"params":{"max_tokens":1},"params":{}},null]}`, 0, 1 + 2*standard},
		{ofBatch, `{"requests":[{"params":{"max_tokens":1}}]`, 0, 1 + standard},
		{ofBatch, `{"max_tokens":1}`, 0, standard},
		{ofChat, `{"requests":[{"params":{"max_tokens":1}}]}`, 0, standard}, // not a batch
		{ofChat, `{"max_tokens":5,"requests":[{"params":{"max_tokens":100}},{}]}`, 5, 100 + standard},
	} {
		q := askOf(c.of, c.body)
		assert.Equal(t, c.own, q.Cap(), c.body)
		assert.Equal(t, c.want, q.Output(standard), c.body)
		assert.Equal(t, c.of == ofBatch && strings.Contains(c.body, "requests"), q.IsBatch(), c.body)
	}
	cut := ReadRequest([]byte(`{"max_tokens":5}`), 100, ofChat)
	assert.Equal(t, uint64(standard), cut.Output(standard), "the rest may have another bound")
}

// TestModelOfARequest: a request for several models counts as one without a model. A server may use any of them.
func TestModelOfARequest(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"cheap"}`: "cheap", `{"model":"cheap","Model":"cheap"}`: "cheap", `{"model":"cheap","MODEL":"big"}`: "",
		`{"model":"cheap","models":["big"]}`: "", `{"models":["big","cheap"]}`: "", `{"models":"big","model":"cheap"}`: "",
		`{"model":"cheap","fallbacks":["big"]}`: "", `{"model":"cheap","fallbacks":[{"model":"big"}]}`: "",
		`{"model":"cheap","models":[{"id":"big"}]}`: "", `{"model":"cheap","models":{}}`: "",
		`{"model":"cheap","models":["cheap"]}`: "cheap", `{"models":["cheap"]}`: "cheap", `{"model":"cheap","models":[]}`: "cheap",
		`{"model":"cheap","models":null}`: "cheap", `{"messages":[{"model":"big"}],"model":"cheap"}`: "cheap",
	} {
		assert.Equal(t, want, ask(body).Model, body)
	}
}

// TestPrompt (pitfalls 8, 10, 12): a text counts by its length, and a list of tokens by the number of tokens. Media
// count as media and not as text.
func TestPrompt(t *testing.T) {
	text := strings.Repeat("word ", 4000)
	q := ask(`{"model":"m","messages":[{"role":"user","content":"` + text + `"}],"max_tokens":3}`)
	assert.InDelta(t, 5000, q.Input(), 50)
	image := base64.StdEncoding.EncodeToString(make([]byte, 2<<20))
	for _, form := range []string{
		`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]}`,
		`{"messages":[{"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}]}`,
		`{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"%s"}}]}]}`,
		`{"messages":[{"content":[{"image":{"format":"png","source":{"bytes":"%s"}}}]}]}`,
		`{"messages":[{"role":"user","content":"","images":["%s"]}]}`,
		`{"input":[{"content":[{"type":"input_image","image_url":"data:image/png;base64,%s"}]}]}`,
	} {
		assert.InDelta(t, perMedia, ask(fmt.Sprintf(form, image)).Input(), 50, form)
	}
	assert.InDelta(t, perMedia, ask(`{"messages":[{"content":[{"image_url":{"url":"https://a.example/b.png"}}]}]}`).Input(), 20)
	assert.Greater(t, ask(`{"data":"`+text+`"}`).Input(), uint64(4990), "text under the key of media is text")
	assert.Greater(t, ask(`{"content":"`+image+`"}`).Input(), uint64(600_000), "and what is in a text is text")
	assert.Equal(t, uint64(1003), ask(`{"input":[`+strings.Repeat("5,", 1000)+`5]}`).Input(), "a prompt of tokens")
	assert.Greater(t, ask(`{"input":"`+text+`"}`).Output(10), uint64(9), "an input is not that of embeddings by itself")
}

// TestNotRead (pitfall 5): a body that cannot be read counts by its length. So it is not free, and does not use up the
// limit.
func TestNotRead(t *testing.T) {
	text := strings.Repeat("a", 4000)
	for _, body := range []string{text, `{"content":"` + text, "{" + text, "\x1f\x8b" + text, `{"data":"` + text + `"}}}`} {
		q := ask(body)
		assert.InDelta(t, 1000, q.Input(), 10, body[:9])
		assert.Equal(t, uint64(1024), q.Output(1024))
	}
	q := ReadRequest([]byte(`{"content":"aaa`), 4000, ofChat)
	assert.InDelta(t, 1000, q.Input(), 10, "what was not read")
	assert.Zero(t, ask("").Input())
	deep := strings.Repeat(`{"a":`, 2000)
	assert.Greater(t, ask(deep+`{"max_tokens":5}`).Input(), uint64(2400), "too deep")
}

// TestAsked: servers read an unclear request in different ways. The field Asked is set only if all of them understand
// that the request asks for a usage. The field Stream is set if any of them may understand that it asks for a stream.
func TestAsked(t *testing.T) {
	for body, want := range map[string]bool{
		`{"stream_options":{"include_usage":true}}`:                                                              true,
		`{"stream_options":{"include_usage":false,"include_usage":true}}`:                                        true,
		`{"stream_options":null,"stream\u005foptions":{"a":{"include_usage":false},"include_usage":true,"b":1}}`: true,
		`{}`: false,
		`{"stream_options":{"include_usage":false}}`:                              false,
		`{"stream_options":{"include_usage":true,"include_usage":false}}`:         false,
		`{"stream_options":{"include_usage":true},"stream_options":null}`:         false,
		`{"stream_options":{"include_usage":true},"stream_options":{}}`:           false,
		`{"Stream_Options":{"Include_Usage":true}}`:                               false,
		`{"Stream_Options":{"include_usage":true}}`:                               false,
		`{"stream_options":{"Include_Usage":true}}`:                               false,
		`{"stream_options":{"include_usage":true,"INCLUDE_USAGE":false}}`:         false,
		`{"stream_options":{"include_usage":true},"stream_option\u017f":null}`:    false,
		`{"stream_options":{"include_usage":"true"}}`:                             false,
		`{"stream_options":{"include_usage":1}}`:                                  false,
		`{"stream_options":[{"include_usage":true}]}`:                             false,
		`{"a":{"stream_options":{"include_usage":true}}}`:                         false,
		`{"stream":true}{"stream_options":{"include_usage":true}}`:                false,
		`{"stream_options":{"include_usage":true},"a":NaN,"stream_options":null}`: false,
	} {
		assert.Equal(t, want, ask(body).IncludeUsage, body)
	}
	for body, want := range map[string]bool{
		`{"stream":true}`: true, `{"stream":1}`: true, `{"stream":"false"}`: true, `{"stream":{}}`: true, `{"STREAM":true}`: true,
		`{"stream":true,"stream":false}`: true, `{"a":NaN,"stream":true}`: true,
		`{"stream":false}`: false, `{"stream":null}`: false, `{}`: false, `{"a":{"stream":true}}`: false,
	} {
		assert.Equal(t, want, ask(body).Stream, body)
	}
}

func TestLearned(t *testing.T) {
	var l Learned
	for range minCosts - 1 {
		l.Note("m", 100)
	}
	_, known := l.Usual("m")
	assert.False(t, known)
	l.Note("m", 100_000)
	cost, known := l.Usual("m")
	assert.True(t, known)
	assert.InDelta(t, 120, cost, 20)
	for range 2000 {
		l.Note("m", 1000)
	}
	cost, _ = l.Usual("m")
	assert.InDelta(t, 1200, cost, 250, "what was before counts less and less")
	for i := range 1000 {
		l.Note(fmt.Sprint("made up ", i), 5)
	}
	assert.LessOrEqual(t, len(l.byModel), maxModels+1)
	_, known = l.Usual("one more")
	assert.True(t, known, "those without room share an entry")
	for bucket := range 4 * 60 {
		limit := limitOf(bucket)
		assert.Equal(t, bucket, bucketOf(limit))
		assert.Equal(t, bucket+1, bucketOf(limit+1))
	}
}
