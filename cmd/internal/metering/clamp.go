package metering

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/bits"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/usage"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits/spec"
)

// A cut is a body in which the bounds of the answer can be lowered. What is not a bound stays as it is, byte by byte.
type cut struct {
	body   []byte // not compressed
	bounds []bound
	fresh  edit // a bound of a body without one; zero where the API has no place for it that is known
}

// maxBounds is how many bounds a body may have.
const maxBounds = 64

// An edit puts a number in the place of some bytes of a body, between two texts.
type edit struct {
	from, to      int
	before, after string
}

// A bound is a value that bounds the answer.
type bound struct {
	edit
	tokens uint64 // 0 if it bounds nothing
	null   bool
}

// Members of a body that may have bounds inside.
var boundsInside = []string{"generationconfig", "generation_config", "inferenceconfig", "options", "parameters"}

// newBound is where a request without a bound gets one: in an object inside of the body, "" for the body itself.
func newBound(api rulefile.API, path string) (object, name string, ok bool) {
	switch {
	case api == rulefile.APIAnthropic:
		return "", "max_tokens", true
	case api == rulefile.APIGemini:
		return "generationConfig", "maxOutputTokens", true
	case api == rulefile.APIOllama && (strings.HasSuffix(path, "/generate") || strings.HasSuffix(path, "/chat")):
		return "options", "num_predict", true
	case api == rulefile.APIBedrock && strings.Contains(path, "/converse"):
		return "inferenceConfig", "maxTokens", true
	case api != rulefile.APIOpenAI:
	case strings.HasSuffix(path, "/chat/completions"):
		return "", "max_completion_tokens", true
	case strings.HasSuffix(path, "/completions"):
		return "", "max_tokens", true
	case strings.HasSuffix(path, "/responses"):
		return "", "max_output_tokens", true
	}
	return "", "", false
}

// newCut returns what can lower the bounds of a whole body for a request of an API. It is nil if the body is no object
// of JSON, or has no bound and the API no place for one that is known.
func newCut(body []byte, api rulefile.API, path string) *cut {
	c := &cut{body: body}
	object, name, known := newBound(api, path)
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' || !c.read(d, "", object, name) {
		return nil
	}
	end := int(d.InputOffset()) - 1
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil
	}
	if known && c.fresh == (edit{}) {
		c.fresh = c.member(end, `"`+name+`":`, "")
		if object != "" {
			c.fresh = c.member(end, `"`+object+`":{"`+name+`":`, "}")
		}
	}
	if c.fresh == (edit{}) && c.least() == 0 {
		return nil
	}
	return c
}

// read reads an object, whose members have names that begin with path. A new bound is a member name of the object at
// object. It is false for what is no JSON.
func (c *cut) read(d *jsontext.Decoder, path, object, name string) bool {
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for d.PeekKind() == '"' {
		key, err := d.ReadValue()
		if err != nil {
			return false
		}
		member := path + strings.ToLower(nameOf(key))
		isFresh := object != "" && member == strings.ToLower(object)
		if path == "" && d.PeekKind() == '{' && slices.Contains(boundsInside, member) {
			if !c.read(d, member+".", object, name) {
				return false
			}
			if isFresh {
				c.fresh = c.member(int(d.InputOffset())-1, `"`+name+`":`, "")
			}
			continue
		}
		value, err := d.ReadValue()
		if err != nil {
			return false
		}
		at := edit{from: int(d.InputOffset()) - len(value), to: int(d.InputOffset())}
		null := string(value) == "null"
		switch {
		case usage.IsBound(member) && len(c.bounds) == maxBounds:
			return false
		case usage.IsBound(member):
			c.bounds = append(c.bounds, bound{at, usage.Bound(bytes.Trim(value, `"`)), null})
		case isFresh && null:
			at.before, at.after = `{"`+name+`":`, "}"
			c.fresh = at
		}
	}
	_, err := d.ReadToken()
	return err == nil
}

// member is a member more in front of the end of an object.
func (c *cut) member(end int, before, after string) edit {
	if last := bytes.TrimRight(c.body[:end], " \t\r\n"); last[len(last)-1] != '{' {
		before = "," + before
	}
	return edit{end, end, before, after}
}

// least returns the smallest bound of the body; 0 if it has none.
func (c *cut) least() (tokens uint64) {
	for _, b := range c.bounds {
		if tokens == 0 || b.tokens > 0 && b.tokens < tokens {
			tokens = b.tokens
		}
	}
	return tokens
}

// size returns how long the body is with other bounds, at most.
func (c *cut) size() int { return len(c.body) + (len(c.bounds)+1)*64 }

// to returns the body with no bound above most, from 1 on. A body without a bound gets one.
func (c *cut) to(most uint64) (body []byte) {
	number, from, bounded := strconv.FormatUint(most, 10), 0, c.least() > 0
	body = make([]byte, 0, c.size())
	replace := func(e edit) {
		body = append(append(append(append(body, c.body[from:e.from]...), e.before...), number...), e.after...)
		from = e.to
	}
	for _, b := range c.bounds {
		if (b.tokens == 0 || b.tokens > most) && !(b.null && bounded) {
			replace(b.edit)
		}
	}
	if len(c.bounds) == 0 {
		replace(c.fresh)
	}
	return append(body, c.body[from:]...)
}

// cuttable reports whether the bounds of the request can be lowered. Nobody may have signed its body.
func (q *Request) cuttable() bool { return q.cut != nil && !q.embeds && !q.body.IsBatch() }

// isSigned reports whether a request says of its body what another body would not fit.
func isSigned(h http.Header) bool {
	for _, name := range []string{"Digest", "Content-Digest", "Content-Md5", "X-Amz-Content-Sha256", "Signature", "X-Amz-Date"} {
		if h.Get(name) != "" {
			return true
		}
	}
	return strings.HasPrefix(h.Get("Authorization"), "AWS4-")
}

// Clamps reports whether the rule lowers the bounds of requests to what is left.
func (m *Meter) Clamps() bool { return m.tokens.Clamp }

// Least returns how many tokens must be left for a request that was read: those of its prompt, and one of each answer.
func (m *Meter) Least(r *http.Request) uint64 {
	q := requestOf(r)
	if !q.cuttable() {
		return m.Estimate(r)
	}
	return max(m.units(q, q.body.Input(), q.body.Times()), 1)
}

// clamp lowers the bounds of an admitted request to what its rules have left. So an answer that is as long as it may be
// costs what is held, but for what the estimate of the prompt is off.
func (a *answer) clamp(r *http.Request, res *httplimit.Result) {
	most, fresh, by := uint64(math.MaxUint64), false, (*Meter)(nil)
	for i := range res.Len() {
		c := res.Check(i)
		m := a.meterOf(c)
		if m == nil || !m.Clamps() || c.Shadow() || c.Unlimited() || !a.q.cuttable() {
			continue
		}
		held := uint64(0)
		for _, h := range a.held {
			if h.meter == m {
				held += h.tokens
			}
		}
		if held == 0 { // nothing counts the request: the store is lost, and the rule open
			continue
		}
		left := c.Decision.Remaining + held
		if n := m.answerIn(a.q, left); n < most {
			most, by = n, m
		}
		fresh = fresh || m.answerIn(a.q, left) < m.tokens.DefaultOutput
	}
	if by == nil || a.q.body.Cap() <= most && (a.q.body.Cap() > 0 || !fresh) {
		a.q.memory.giveSpare()
		return
	}
	by.state.clamped.Add(1)
	a.q.replaceBody(r, a.q.cut.to(most))
}

// meterOf returns the meter of a check that holds something.
func (a *answer) meterOf(c *httplimit.Check) *Meter {
	for _, h := range a.held {
		if h.meter.Rule == c.Name() {
			return h.meter
		}
	}
	return nil
}

// answerIn returns how long each answer to a request may be that has so many tokens of the limit, 1 at least.
func (m *Meter) answerIn(q *Request, tokens uint64) uint64 {
	w := m.weights(q)
	if w == usage.Total {
		w = usage.Weights{Input: 1000, Output: 1000}
	}
	if w.Output == 0 {
		return math.MaxUint64 // the answer costs nothing
	}
	units := min(tokens, spec.MaxBurst) * max(m.tokens.Scale, 1) * 1000 // at most 2^32 * 10^6 * 1000
	high, prompt := bits.Mul64(q.body.Input(), w.Input)
	if high > 0 || prompt >= units {
		return 1
	}
	return max((units-prompt)/w.Output/q.body.Times(), 1)
}

// replaceBody has the upstream get another body, not compressed.
func (q *Request) replaceBody(r *http.Request, body []byte) {
	delete(r.Header, "Content-Encoding")
	if r.ContentLength >= 0 {
		r.ContentLength = int64(len(body))
		delete(r.Header, "Content-Length")
	}
	r.Body = &readBody{bytes.NewReader(body), r.Body}
}
