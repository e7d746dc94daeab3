package metering

import (
	"bytes"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/usage"
	paths "github.com/weir-go/weir/httplimit/reading"
)

// usageEditSize returns by how many bytes stream_options.include_usage makes a body longer. ok is false if the body is
// not an object.
func usageEditSize(body []byte) (added int, ok bool) {
	ok = eachEdit(body, func(from, to int, text string) { added += len(text) - (to - from) })
	return added, ok
}

func addUsage(body []byte, added int) []byte {
	out, copied := make([]byte, 0, len(body)+added), 0
	eachEdit(body, func(from, to int, text string) {
		out = append(append(out, body[copied:from]...), text...)
		copied = to
	})
	return append(out, body[copied:]...)
}

// eachEdit calls put for each edit that makes a body ask for usage. An edit is a range of the body and its
// replacement. Every member with the name stream_options is edited.
//
// Of members with equal names, servers use the last one, and some servers ignore case. So if no member has the name, or
// the last one has it in another case, eachEdit also adds a member at the end. eachEdit returns false if the body is
// not an object.
func eachEdit(body []byte, put func(from, to int, text string)) bool {
	const name, usageMember = "stream_options", `"include_usage":true`
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' {
		return false
	}
	_, _ = d.ReadToken() // PeekKind has shown that this is a token
	found, empty := false, true
	for d.PeekKind() == '"' {
		key, err := d.ReadValue()
		if err != nil {
			return false
		}
		member := nameOf(key)
		value, err := d.ReadValue()
		if err != nil {
			return false
		}
		if empty = false; usage.Fold(member) != name {
			continue
		}
		if found = member == name; !found {
			continue
		}
		end := int(d.InputOffset())
		switch {
		case value[0] != '{':
			put(end-len(value), end, "{"+usageMember+"}")
		case len(bytes.TrimSpace(value[1:len(value)-1])) == 0:
			put(end-1, end-1, usageMember)
		default:
			put(end-1, end-1, ","+usageMember)
		}
	}
	if _, err := d.ReadToken(); err != nil { // reads the end of the object
		return false
	}
	if end := int(d.InputOffset()) - 1; !found && empty {
		put(end, end, `"`+name+`":{`+usageMember+"}")
	} else if !found {
		put(end, end, `,"`+name+`":{`+usageMember+"}")
	}
	return true
}

// nameOf returns the name in a JSON text. It returns "", without copying, if the text is longer than any name that is
// needed.
func nameOf(text []byte) string {
	if len(text) > 256 {
		return ""
	}
	name, _ := jsontext.AppendUnquote(nil, text) // an error means that the name is not valid UTF-8
	return string(name)
}

// askForUsage inserts include_usage into the body of a request. Its parameter text is the body as it came, and plain is
// the decompressed body. It returns the body to pass on, and the body to parse. It returns the error of claim.take.
//
// A body that could be decompressed is passed on uncompressed. If a JSON body has a wrong Content-Encoding, the field
// stays, because the upstream may ignore it.
func (q *Request) askForUsage(r *http.Request, text, plain []byte, encoded bool) (forwarded, parsed []byte, err error) {
	added, ok := usageEditSize(plain)
	if !ok {
		return text, plain, nil
	}
	if err := q.memory.take(sizeOf(len(plain) + added)); err != nil {
		return nil, nil, err
	}
	body := addUsage(plain, added)
	q.usageRequested = true
	q.memory.give(sizeOf(cap(plain)))
	if isSeparate(text, plain) {
		q.memory.give(sizeOf(cap(text)))
	}
	if encoded {
		delete(r.Header, "Content-Encoding")
	}
	if r.ContentLength >= 0 {
		r.ContentLength = int64(len(body))
		delete(r.Header, "Content-Length")
	}
	return body, body, nil
}

func isSeparate(text, plain []byte) bool {
	return len(text) > 0 && len(plain) > 0 && &plain[0] != &text[0]
}

// completions matches the paths at which servers of OpenAI's API know stream_options.
var completions = func() paths.Match {
	p, err := paths.ParseRegexp("completions/?$")
	if err != nil {
		panic(err)
	}
	return paths.Match{Paths: []paths.Path{p}}
}()

// wantsUsage reports whether weir must ask for the usage of a stream because the client has not asked. If the API
// depends on the path, the request counts as one to OpenAI's API if any reading of the path says so.
func (q *Request) wantsUsage(r *http.Request) bool {
	return q.body.Stream && !q.body.IncludeUsage && slices.ContainsFunc(q.meters, func(m *Meter) bool {
		api := m.tokens.API
		return m.tokens.AskUsage && (api == rulefile.APIOpenAI || api == rulefile.APIAuto || api == "")
	}) && completions.Meets(r, nil)
}
