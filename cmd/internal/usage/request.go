package usage

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// MaxModel is how long the name of a model may be: longer ones are cut.
const MaxModel = maxText - 1

const (
	perToken  = 4     // bytes of text
	perMedia  = 1_500 // tokens of an image, a sound, a document
	maxTimes  = 1_000 // answers to one request
	leastBlob = 256   // bytes that a text has at least to be taken for media
)

// A Request is what the body of a request says of its cost.
type Request struct {
	Model  string // "" if it names none, or several
	Stream bool   // the answer is one
	Asked  bool   // stream_options.include_usage: the stream has a usage

	text    uint64 // bytes
	numbers uint64 // in lists: a prompt may be a list of tokens
	media   uint64
	cap     uint64 // the largest bound of the answer; 0 for none
	times   uint64 // how many answers are asked for
	batch   [3]uint64
	unread  uint64 // bytes of the body that were not read
}

// What a batch has.
const (
	batchItems = iota
	batchCapped
	batchCaps // their sum
)

// Fields of a request.
const (
	qModel field = iota + 1
	qStream
	qAsked
	qCap
	qTimes
	qItem     // of a batch
	qBatchCap // of an item
	qMedia
)

// caps are the paths of bounds of an answer, in lower case: some servers do not mind the case of keys.
var caps = []string{
	"max_tokens", "max_completion_tokens", "max_output_tokens", "generationconfig.maxoutputtokens",
	"generation_config.max_output_tokens", "generationconfig.max_output_tokens", "generation_config.maxoutputtokens",
	"inferenceconfig.maxtokens", "options.num_predict", "max_new_tokens", "parameters.max_new_tokens", "num_predict",
}

// asked are the fields of a request.
var asked = func() *node {
	root := &node{}
	fields(root, map[string]field{
		"model": qModel, "stream": qStream, "stream_options.include_usage": qAsked, "n": qTimes, "best_of": qTimes,
		"generationconfig.candidatecount": qTimes, "generation_config.candidate_count": qTimes,
		"generationconfig.candidate_count": qTimes, "generation_config.candidatecount": qTimes, "requests.[]": qItem,
	})
	for _, path := range caps {
		root.at(strings.Split(path, ".")...).field = qCap
		for _, item := range []string{"params", "body", "request"} {
			root.at("requests", "[]", item).at(strings.Split(path, ".")...).field = qBatchCap
		}
	}
	return root
}()

// media are the keys, in lower case, whose texts are media where they look like them.
var media = map[string]bool{
	"url": true, "image_url": true, "data": true, "bytes": true, "file_data": true, "file_id": true, "file_uri": true,
	"fileuri": true, "uri": true, "images": true, "image": true,
}

// ReadRequest reads the body of a request, decompressed. size is how long the body is in full if that is more: what is
// not here counts as text. A body that is no JSON counts as text.
func ReadRequest(body []byte, size int64) Request {
	q := Request{unread: uint64(max(size-int64(len(body)), 0))}
	a := &asker{q: &q}
	a.doc.sink, a.doc.root, a.doc.fold = a, asked, true
	a.doc.reset()
	a.doc.write(body)
	a.doc.write([]byte{'\n'})
	switch {
	case a.doc.step == inString, a.doc.step == inEscape, a.doc.step == inUnicode:
		q.text += uint64(a.doc.size) // the body has been cut here
	case a.doc.step == broken:
		q.text = max(q.text, uint64(len(body))) // and nothing in it is taken for media
		q.media, q.Model = 0, ""
	}
	return q
}

// An asker reads a request.
type asker struct {
	doc   document
	q     *Request
	key   string // the last one
	named bool   // a model
}

// value implements sink.
func (a *asker) value(d *document, at *node, k kind, text []byte, size int) {
	q := a.q
	switch {
	case k == isString && d.isKey:
		a.key = string(bytes.ToLower(d.text[:d.kept]))
		q.text += uint64(size)
		return
	case k == isString && media[a.key] && isMedia(text, size):
		q.media++
	case k == isString:
		q.text += uint64(size)
	case k == isNumber && d.depth > 0 && d.isArray():
		q.numbers++
	}
	if at == nil {
		return
	}
	switch at.field {
	case qModel:
		a.name(k == isString, string(text))
	case qStream:
		q.Stream = q.Stream || string(text) == "true"
	case qAsked:
		q.Asked = string(text) == "true"
	case qCap:
		q.cap = max(q.cap, Bound(text))
	case qTimes:
		q.times = max(q.times, bound(text, maxTimes))
	case qItem:
		q.batch[batchItems]++
	case qBatchCap:
		if n := Bound(text); n > 0 {
			q.batch[batchCapped]++
			q.batch[batchCaps] += n
		}
	}
}

func (a *asker) ended(*document) {}

// name notes a model. Of two that differ a server may take either, so the request has none then.
func (a *asker) name(ok bool, model string) {
	switch {
	case !ok || a.named && a.q.Model != model:
		a.q.Model = ""
	case !a.named:
		a.q.Model = model
	}
	a.named = true
}

// IsBound reports whether a path, in lower case, is one of a bound of the answer.
func IsBound(path string) bool { return slices.Contains(caps, path) }

// Bound returns the bound that the text of a number is, at most [MaxField]; 0 for what bounds nothing.
func Bound(text []byte) uint64 { return bound(text, MaxField) }

// bound returns a number above 0, or most if it is above that; 0 for any other text. Servers take 100.0 and "100" for
// 100.
func bound(text []byte, most uint64) uint64 {
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil && n == 0 || !(n >= 1) {
		return 0
	}
	if n > float64(most) {
		return most
	}
	return uint64(n)
}

// isMedia reports whether the text at a key for media is a URL or what bytes are encoded as, by its begin.
func isMedia(text []byte, size int) bool {
	for _, c := range text {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return size >= leastBlob || bytes.HasPrefix(text, []byte("http")) || bytes.HasPrefix(text, []byte("data:")) ||
		bytes.HasPrefix(text, []byte("gs:")) || bytes.HasPrefix(text, []byte("file"))
}

// Input estimates the tokens of the prompt.
func (q *Request) Input() uint64 {
	return (q.text+q.unread+perToken-1)/perToken + q.numbers + q.media*perMedia
}

// Cap returns the largest bound of the answer; 0 for none.
func (q *Request) Cap() uint64 { return q.cap }

// Times returns how many answers are asked for, 1 at least.
func (q *Request) Times() uint64 { return max(q.times, 1) }

// IsBatch reports whether the request has several inside.
func (q *Request) IsBatch() bool { return q.batch[batchItems] > 0 }

// Output returns how many tokens the answer may have at most. Without a bound in the request it is defaultOutput. That
// of a batch is the sum of its requests.
func (q *Request) Output(defaultOutput uint64) uint64 {
	if items := q.batch[batchItems]; items > 0 {
		unbound := items - min(items, q.batch[batchCapped])
		return max(q.batch[batchCaps]+unbound*defaultOutput, q.cap)
	}
	one := q.cap
	if one == 0 {
		one = defaultOutput
	}
	return one * q.Times()
}
