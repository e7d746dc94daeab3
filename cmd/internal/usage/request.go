package usage

import (
	"bytes"
	"strconv"
	"strings"
)

// MaxModel is the largest length of the name of a model. Longer names are cut.
const MaxModel = maxText - 1

const (
	perToken = 4     // bytes of text per token
	perMedia = 1_500 // tokens of an image, a sound or a document
	maxTimes = 1_000 // largest number of answers to one prompt
	minBlob  = 256   // length of the shortest text that counts as media, in bytes
)

// A Request has what the body of a request says about its cost.
type Request struct {
	Model        string // "" if the body names no model, or several
	Stream       bool   // the answer may be a stream
	IncludeUsage bool   // stream_options.include_usage is set, so every server reports the usage in the stream

	text        uint64 // number of bytes
	numbers     uint64 // number of numbers in lists, because a prompt may be a list of tokens
	media       uint64
	obeyedBound uint64 // the largest bound of the answer that the server obeys; 0 for none
	bounds      tally  // everything that looks like a bound
	answers     uint64 // how many answers each prompt asks for
	prompts     uint64 // number of prompts in a list of prompts; each gets its own answers
	batch       batch
	unread      uint64 // number of bytes of the body that were not read
}

// A batch has the numbers of a request that combines several requests.
type batch struct {
	expected bool // the path is that of a batch; otherwise the fields of a batch have no meaning
	items    uint64
	unbound  uint64 // number of items without a bound
	bounds   uint64 // sum over all items of the item's largest value that looks like a bound
}

func (b *batch) add(item *tally) {
	if item.bound() == 0 {
		b.unbound++
	}
	b.bounds += item.largest
}

const (
	qModel  field = iota + 1
	qModels       // other models, which gateways try if the first one fails
	qStream
	qOptions
	qIncludeUsage
	qBound
	qObject // an object for bounds
	qTimes
	qPrompt     // an element of a list of prompts, or of one prompt's list of tokens
	qItem       // an item of a batch
	qItemBound  // a bound of an item
	qItemObject // the object for the bounds of an item
)

var requestFields = func() *node {
	root := &node{}
	setFields(root, map[string]field{
		"model": qModel, "models": qModels, "models.[]": qModel, "fallbacks": qModels, "fallbacks.[]": qModel,
		"stream": qStream, "stream_options": qOptions, "stream_options.include_usage": qIncludeUsage,
		"generationconfig.candidatecount": qTimes, "generation_config.candidate_count": qTimes,
		"generationconfig.candidate_count": qTimes, "generation_config.candidatecount": qTimes,
		"n": qTimes, "best_of": qTimes, "prompt.[]": qPrompt, "prompt_embeds.[]": qPrompt, "requests.[]": qItem, "requests.[].params": qItemObject,
	})
	for _, path := range boundPaths {
		root.descend(strings.Split(path, ".")...).field = qBound
		if object, _, inside := strings.Cut(path, "."); inside {
			root.descend(object).field = qObject
		}
		for _, item := range []string{"params", "body", "request"} {
			root.descend("requests", "[]", item).descend(strings.Split(path, ".")...).field = qItemBound
		}
	}
	return root
}()

// The texts under these keys, which are in lower case, count as media if they look like media.
var media = map[string]bool{
	"url": true, "image_url": true, "data": true, "bytes": true, "file_data": true, "file_id": true, "file_uri": true,
	"fileuri": true, "uri": true, "images": true, "image": true,
}

// ReadRequest reads the decompressed body of a request. The [Bounds] say where the server reads bounds. If the
// parameter body is only the beginning of a longer body, size is the length of the complete body. The missing part
// counts as text. A body that is not JSON counts as text, too.
//
// If a body is not exactly one JSON document, a server may read the body differently. So nothing in it counts as a
// bound, and it counts as a request for a stream.
func ReadRequest(body []byte, size int64, bounds *Bounds) Request {
	q := Request{unread: uint64(max(size-int64(len(body)), 0))}
	q.batch.expected = bounds != nil && bounds.Batch
	a := &requestReader{q: &q, bounds: bounds}
	a.doc.sink, a.doc.root, a.doc.fold = a, requestFields, true
	a.doc.reset()
	a.doc.write(body)
	a.doc.write([]byte{'\n'})
	switch {
	case a.doc.step == inString, a.doc.step == inEscape, a.doc.step == inUnicode:
		q.text += uint64(a.doc.size) // the body was cut within a text
	case a.doc.step == broken:
		q.text = max(q.text, uint64(len(body))) // in this case, nothing counts as media
		q.media, q.Model = 0, ""
	}
	if q.batch.items > 0 {
		q.batch.add(&a.item)
	}
	if a.doc.isBetween() && a.documents == 1 && q.unread == 0 {
		q.obeyedBound = q.bounds.bound()
	} else {
		q.Stream, q.IncludeUsage, q.batch.unbound = true, false, q.batch.items
	}
	return q
}

type requestReader struct {
	doc       document
	q         *Request
	bounds    *Bounds
	key       string          // the last key, in lower case
	keys      [maxKeys]string // keys of the enclosing objects, by depth, in their original spelling
	hasModel  bool            // the body has named a model
	item      tally           // the tally of the current item of a batch
	documents int
}

// The spelling of keys is compared at depths below maxKeys.
const maxKeys = 8

// atItem is the depth of the keys in an item of a batch.
const itemDepth = 3

// value implements sink.
func (a *requestReader) value(d *document, n *node, k kind, text []byte, size int) {
	q := a.q
	switch {
	case k == kindString && d.isKey:
		key := string(d.text[:d.textLen])
		if a.key = strings.ToLower(key); d.depth < maxKeys {
			a.keys[d.depth] = key
		}
		q.text += uint64(size)
		return
	case k == kindString && media[a.key] && isMedia(text, size):
		q.media++
	case k == kindString:
		q.text += uint64(size)
	case k == kindNumber && d.depth > 0 && d.isArray():
		q.numbers++
	}
	if n != nil {
		a.field(d, n.field, k, text)
	}
}

func (a *requestReader) field(d *document, f field, k kind, text []byte) {
	q := a.q
	switch f {
	case qModel:
		a.noteModel(k == kindString, string(text))
	case qModels:
		if k != kindArray && k != kindLiteral {
			a.noteModel(false, "")
		}
	case qStream:
		q.Stream = q.Stream || k != kindLiteral || string(text) == "true"
	case qOptions:
		q.IncludeUsage = false // the last stream_options count
	case qIncludeUsage:
		q.IncludeUsage = k == kindLiteral && string(text) == "true" && a.path(d, 1) == "stream_options.include_usage"
	case qBound:
		q.bounds.note(a.bounds, a.path(d, 1), k, text)
	case qObject:
		if a.bounds.IsObject(Fold(a.path(d, 1))) {
			q.bounds.objects++
		}
	case qTimes:
		q.answers = max(q.answers, bound(text, maxTimes))
	case qPrompt:
		if k != kindNumber { // a number is a token of a prompt
			q.prompts++
		}
	case qItem:
		if q.batch.items > 0 {
			q.batch.add(&a.item)
		}
		q.batch.items, a.item = q.batch.items+1, tally{}
	case qItemBound:
		a.item.note(itemBounds, a.path(d, itemDepth), k, text)
	case qItemObject:
		a.item.objects++
	}
}

// path returns the path of the current value in its original spelling. The path begins at the given depth.
func (a *requestReader) path(d *document, from int) string {
	return strings.Join(a.keys[from:min(d.depth+1, maxKeys)], ".")
}

func (a *requestReader) documentDone(*document) { a.documents++ }

// noteModel notes the name of a model. If a request names two different models, a server may use either of them. So the
// request then counts as one without a model.
func (a *requestReader) noteModel(ok bool, model string) {
	switch {
	case !ok || a.hasModel && a.q.Model != model:
		a.q.Model = ""
	case !a.hasModel:
		a.q.Model = model
	}
	a.hasModel = true
}

// Bound parses a bound of an answer from the text of a number. The result is at most [MaxField]. It is 0 if the text is
// not a bound.
func Bound(text []byte) uint64 { return bound(text, MaxField) }

// bound parses a number above 0, and returns at most limit. For any other text, it returns 0. It reads 100.0 and "100"
// as 100, as servers do.
func bound(text []byte, limit uint64) uint64 {
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil && n == 0 || !(n >= 1) {
		return 0
	}
	if n > float64(limit) {
		return limit
	}
	return uint64(n)
}

// isMedia reports whether a text looks like a URL or like encoded bytes. It gets the beginning of the text. It is
// called for texts under the keys in media.
func isMedia(text []byte, size int) bool {
	for _, c := range text {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return size >= minBlob || bytes.HasPrefix(text, []byte("http")) || bytes.HasPrefix(text, []byte("data:")) ||
		bytes.HasPrefix(text, []byte("gs:")) || bytes.HasPrefix(text, []byte("file"))
}

// Input returns an estimate of the tokens of the prompt.
func (q *Request) Input() uint64 {
	return (q.text+q.unread+perToken-1)/perToken + q.numbers + q.media*perMedia
}

// Cap returns the largest bound in the request that the server obeys. It is 0 if there is none.
func (q *Request) Cap() uint64 { return q.obeyedBound }

// Times returns how many answers the request asks for. It is at least 1.
func (q *Request) Times() uint64 { return max(q.answers, 1) * max(q.prompts, 1) }

// IsBatch reports whether the request is a batch of other requests.
func (q *Request) IsBatch() bool { return q.batch.expected && q.batch.items > 0 }

// Answer returns how many tokens one answer may have. This is the bound that the server obeys, or defaultOutput if
// there is no bound. If another value only looks like a bound but is larger, Answer returns this value.
func (q *Request) Answer(defaultOutput uint64) uint64 {
	return q.bounds.output(q.obeyedBound, defaultOutput)
}

// Output returns how many tokens all answers together may have at most. For a batch, it is the sum over the items.
// Otherwise it is the largest number for one answer, times the number of answers. For a body that only looks like a
// batch, it is the larger of the two.
func (q *Request) Output(defaultOutput uint64) uint64 {
	items := q.batch.bounds + q.batch.unbound*defaultOutput
	if q.IsBatch() {
		return max(items, q.bounds.largest)
	}
	return max(items, q.Answer(defaultOutput)*q.Times())
}
