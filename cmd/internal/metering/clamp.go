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

	"github.com/weir-go/weir/cmd/internal/usage"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits/spec"
)

// A boundEditor lowers the bounds of the answer in the body of a request. All other bytes stay unchanged.
type boundEditor struct {
	body      []byte // not compressed
	bounds    *usage.Bounds
	hasBound  bool   // the server obeys one of the bounds
	edits     []edit // for each member that looks like a bound, and for each place for a new bound, in order
	hasObject bool   // there is an object for bounds, however its name is spelled
}

const maxBounds = 64

type edit struct {
	from, to      int
	before, after string
	isBound       bool   // the bytes are a bound
	tokens        uint64 // the bound, or the number in a text that looks like one; 0 for none
}

// boundsInside has the members of a body that may have bounds inside.
var boundsInside = []string{"generationconfig", "generation_config", "inferenceconfig", "options", "parameters"}

// newBoundEditor returns the editor of a complete body. Its last parameters are the bounds that the server knows, and
// whether the body has a bound that the server obeys. newBoundEditor returns nil if the body is not a JSON object or
// the server knows no bounds.
func newBoundEditor(body []byte, bounds *usage.Bounds, hasBound bool) *boundEditor {
	if bounds == nil || len(bounds.Fields) == 0 {
		return nil
	}
	c := &boundEditor{body: body, bounds: bounds, hasBound: hasBound}
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' || !c.read(d, "") {
		return nil
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil
	}
	return c
}

// read reads an object of the body. The paths of its members begin with path. If the object can have a bound but has
// none, read notes the place for one. It returns false if the text is not JSON or needs too many edits.
func (c *boundEditor) read(d *jsontext.Decoder, path string) bool {
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	hasBound := false
	for d.PeekKind() == '"' {
		key, err := d.ReadValue()
		if err != nil {
			return false
		}
		member := path + nameOf(key)
		if path == "" && d.PeekKind() == '{' && slices.Contains(boundsInside, usage.Fold(member)) {
			if !c.read(d, member+".") {
				return false
			}
			continue
		}
		value, err := d.ReadValue()
		if err != nil {
			return false
		}
		if hasBound = c.value(member, value, int(d.InputOffset())) || hasBound; len(c.edits) > maxBounds {
			return false
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	c.notePlace(strings.TrimSuffix(path, "."), int(d.InputOffset())-1, hasBound)
	return len(c.edits) <= maxBounds
}

// value notes the value of a member. The parameter end is the offset in the body at which the value ends. exact reports
// whether the member has exactly the name of a bound.
func (c *boundEditor) value(member string, value jsontext.Value, end int) (exact bool) {
	e, folded, isNull := edit{from: end - len(value), to: end}, usage.Fold(member), value.Kind() == 'n'
	field, exact := c.bounds.Find(member)
	switch {
	case usage.IsBound(folded) && (field >= 0 || !isNull):
		e.tokens = usage.Bound(bytes.Trim(value, `"`))
		e.isBound = value.Kind() == '0' && e.tokens > 0
		c.edits = append(c.edits, e)
	case isNull && c.bounds.IsObject(folded):
		e.before, e.after = `{"`+c.bounds.Fields[0][0]+`":`, "}"
		c.edits = append(c.edits, e)
		c.noteObject(member)
	}
	return exact
}

// notePlace notes that a bound can be inserted at the end of an object, unless the object has a bound or none belongs
// there. The parameter object is the name of the object, "" for the body itself. The parameter hasBound says whether
// the object has a bound.
func (c *boundEditor) notePlace(object string, end int, hasBound bool) {
	before, after := `"`+c.bounds.Fields[0][0]+`":`, ""
	switch inside := len(c.bounds.Object) > 0; {
	case object != "" && !c.bounds.IsObject(usage.Fold(object)), object == "" && inside && c.hasObject:
		return
	case object != "":
		c.noteObject(object)
	case inside:
		before, after = `"`+c.bounds.Object[0]+`":{`+before, "}"
	}
	if hasBound {
		return
	}
	if last := bytes.TrimRight(c.body[:end], " \t\r\n"); last[len(last)-1] != '{' {
		before = "," + before
	}
	c.edits = append(c.edits, edit{from: end, to: end, before: before, after: after})
}

// noteObject records that the body has an object for bounds, if the given name is exactly the name of such an object.
func (c *boundEditor) noteObject(object string) {
	c.hasObject = c.hasObject || slices.Contains(c.bounds.Object, object)
}

// size returns the largest length of the body after its bounds are changed.
func (c *boundEditor) size() int { return len(c.body) + len(c.edits)*64 }

// lowerTo returns the body, with every bound above limit lowered to limit, which is at least 1. If the body has no
// bound, one is inserted.
func (c *boundEditor) lowerTo(limit uint64) (body []byte) {
	from := 0
	body = make([]byte, 0, c.size())
	for _, e := range c.edits {
		if e.isBound && e.tokens <= limit || !e.isBound && c.hasBound {
			continue
		}
		n := limit
		if e.tokens > 0 {
			n = min(n, e.tokens)
		}
		body = append(append(body, c.body[from:e.from]...), e.before...)
		body = append(strconv.AppendUint(body, n, 10), e.after...)
		from = e.to
	}
	return append(body, c.body[from:]...)
}

// canClamp reports whether weir can lower the bounds of the request. For example, it cannot change a signed body.
func (q *Request) canClamp() bool { return q.editor != nil && !q.isEmbedding && !q.body.IsBatch() }

// isSigned reports whether the header has a field, such as a digest, that would be wrong after a change of the body.
func isSigned(h http.Header) bool {
	for _, name := range []string{"Digest", "Content-Digest", "Content-Md5", "X-Amz-Content-Sha256", "Signature", "X-Amz-Date"} {
		if h.Get(name) != "" {
			return true
		}
	}
	return strings.HasPrefix(h.Get("Authorization"), "AWS4-")
}

// Clamps reports whether the rule lowers the bounds of requests to what the key has left.
func (m *Meter) Clamps() bool { return m.tokens.Clamp }

// Least returns how many tokens a key must have left for a request whose body was read. They are the tokens of the
// prompt, and one token for each answer.
func (m *Meter) Least(r *http.Request) uint64 {
	q := requestOf(r)
	if !q.canClamp() {
		return m.Estimate(r)
	}
	return max(m.units(q, q.body.Input(), q.body.Times()), 1)
}

// clamp lowers the bounds of an admitted request. Then its longest answer fits into the tokens held for it and the
// tokens left under its rules. Only the estimate of the prompt can be wrong.
func (a *answer) clamp(r *http.Request, res *httplimit.Result) {
	limit, exceeds, tightest := uint64(math.MaxUint64), false, (*Meter)(nil)
	for i := range res.Len() {
		c := res.Check(i)
		m := a.meterOf(c)
		if m == nil || !m.Clamps() || c.Shadow() || c.Unlimited() || !a.q.canClamp() {
			continue
		}
		heldTokens := uint64(0)
		for _, h := range a.holds {
			if h.meter == m {
				heldTokens += h.tokens
			}
		}
		if heldTokens == 0 { // the request is not counted, because the store is lost and the rule admits everything
			continue
		}
		left := c.Decision.Remaining + heldTokens
		n := m.maxAnswer(a.q, left)
		exceeds = exceeds || n < a.q.body.Answer(m.tokens.DefaultOutput)
		if n < limit {
			limit, tightest = n, m
		}
	}
	if !exceeds {
		a.q.memory.giveSpare()
		return
	}
	tightest.state.clamped.Add(1)
	a.q.replaceBody(r, a.q.editor.lowerTo(limit))
}

func (a *answer) meterOf(c *httplimit.Check) *Meter {
	for _, h := range a.holds {
		if h.meter.Rule == c.Name() {
			return h.meter
		}
	}
	return nil
}

// maxAnswer returns how long each answer of a request may be, so that the request costs at most the given tokens of the
// limit. The result is at least 1.
func (m *Meter) maxAnswer(q *Request, tokens uint64) uint64 {
	w := m.weights(q)
	if w == usage.Total {
		w = usage.Weights{Input: 1000, Output: 1000}
	}
	if w.Output == 0 {
		return math.MaxUint64 // answers cost nothing
	}
	units := min(tokens, spec.MaxBurst) * max(m.tokens.Scale, 1) * 1000 // at most 2^32 * 10^6 * 1000
	high, prompt := bits.Mul64(q.body.Input(), w.Input)
	if high > 0 || prompt >= units {
		return 1
	}
	return max((units-prompt)/w.Output/q.body.Times(), 1)
}

// replaceBody replaces the body of the request to the upstream by an uncompressed body.
func (q *Request) replaceBody(r *http.Request, body []byte) {
	delete(r.Header, "Content-Encoding")
	if r.ContentLength >= 0 {
		r.ContentLength = int64(len(body))
		delete(r.Header, "Content-Length")
	}
	r.Body = &readBody{bytes.NewReader(body), r.Body}
}
