package usage

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func ask(body string) *Request {
	q := ReadRequest([]byte(body), int64(len(body)))
	return &q
}

// TestBounds (pitfalls 6, 7, 9, 40): the largest bound counts, times the answers.
func TestBounds(t *testing.T) {
	const standard = 1024
	for body, want := range map[string]uint64{
		`{}`:                        standard,
		`{"max_tokens":5}`:          5,
		`{"max_tokens":999999999}`:  MaxField,
		`{"max_tokens":1e300}`:      MaxField,
		`{"max_tokens":0}`:          standard,
		`{"max_tokens":-1}`:         standard,
		`{"max_tokens":null}`:       standard,
		`{"max_tokens":"70"}`:       70,
		`{"max_tokens":70.0}`:       70,
		`{"MAX_tokens":70}`:         70,
		`{"max\u005ftokens":70}`:    70,
		`{"a":{"max_tokens":70}}`:   standard,
		`{"max_tokens":70} trailer`: 70,
		`{"max_tokens":1,"max_completion_tokens":100000}`:               100000,
		`{"max_tokens":9,"max_tokens":1}`:                               9,
		`{"max_output_tokens":6}`:                                       6,
		`{"generationConfig":{"maxOutputTokens":7,"candidateCount":3}}`: 21,
		`{"generation_config":{"max_output_tokens":7}}`:                 7,
		`{"inferenceConfig":{"maxTokens":8}}`:                           8,
		`{"options":{"num_predict":9}}`:                                 9,
		`{"options":{"num_predict":-1}}`:                                standard,
		`{"max_tokens":10,"n":4}`:                                       40,
		`{"max_tokens":10,"n":2,"best_of":5}`:                           50,
		`{"max_tokens":10,"n":1000000000}`:                              10 * maxTimes,
		`{"max_tokens":10,"n":-4}`:                                      10,
		`{"requests":[{"params":{"max_tokens":10}},{"params":{"max_tokens":30}},{"params":{}}]}`: 40 + standard,
	} {
		assert.Equal(t, want, ask(body).Output(standard), body)
	}
}

// TestPrompt (pitfalls 8, 10, 12): text counts, media count as media, tokens count as tokens.
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

// TestNotRead (pitfall 5): a body that cannot be read counts by its length: neither nothing nor everything.
func TestNotRead(t *testing.T) {
	text := strings.Repeat("a", 4000)
	for _, body := range []string{text, `{"content":"` + text, "{" + text, "\x1f\x8b" + text, `{"data":"` + text + `"}}}`} {
		q := ask(body)
		assert.InDelta(t, 1000, q.Input(), 10, body[:9])
		assert.Equal(t, uint64(1024), q.Output(1024))
	}
	q := ReadRequest([]byte(`{"content":"aaa`), 4000)
	assert.InDelta(t, 1000, q.Input(), 10, "what was not read")
	assert.Zero(t, ask("").Input())
	deep := strings.Repeat(`{"a":`, 2000)
	assert.Greater(t, ask(deep+`{"max_tokens":5}`).Input(), uint64(2400), "too deep")
}

func TestAsked(t *testing.T) {
	assert.Equal(t, [2]bool{true, false}, [2]bool{ask(`{"stream":true}`).Stream, ask(`{"stream":true}`).Asked})
	q := ask(`{"model":"m","stream":true,"stream_options":{"include_usage":true}}`)
	assert.True(t, q.Stream && q.Asked)
	assert.Equal(t, "m", q.Model)
}

func TestLearned(t *testing.T) {
	var l Learned
	for range enough - 1 {
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
	assert.LessOrEqual(t, len(l.of), maxModels+1)
	_, known = l.Usual("one more")
	assert.True(t, known, "those without room share an entry")
	for bucket := range 4 * 60 {
		limit := limitOf(bucket)
		assert.Equal(t, bucket, bucketOf(limit))
		assert.Equal(t, bucket+1, bucketOf(limit+1))
	}
}
