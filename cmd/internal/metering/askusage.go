package metering

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// usageAdds returns how many bytes longer the body of a request is with stream_options.include_usage; false if it is no
// object, or its stream_options are none.
func usageAdds(body []byte) (longer int, ok bool) {
	ok = eachOption(body, func(from, to int, text string) { longer += len(text) - (to - from) })
	return longer, ok
}

// addUsage returns the body so. Nothing else is changed.
func addUsage(body []byte, longer int) []byte {
	out, done := make([]byte, 0, len(body)+longer), 0
	eachOption(body, func(from, to int, text string) {
		out = append(append(out, body[done:from]...), text...)
		done = to
	})
	return append(out, body[done:]...)
}

// eachOption calls put with the parts of a body that are to be replaced, and by what, for each of its stream_options.
// Of two members of a name servers take the last. It is false if the body is no object, or its stream_options are none.
func eachOption(body []byte, put func(from, to int, text string)) bool {
	const usage = `"include_usage":true`
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' {
		return false
	}
	_, _ = d.ReadToken() // the kind is that of a token
	found, empty := false, true
	for d.PeekKind() == '"' {
		name, err := d.ReadValue()
		if err != nil {
			return false
		}
		isOptions := nameOf(name) == "stream_options"
		value, err := d.ReadValue()
		if err != nil {
			return false
		}
		if empty = false; !isOptions {
			continue
		}
		end := int(d.InputOffset())
		found = true
		switch {
		case string(value) == "null":
			put(end-len(value), end, "{"+usage+"}")
		case value[0] != '{':
			return false
		case len(bytes.TrimSpace(value[1:len(value)-1])) == 0:
			put(end-1, end-1, usage)
		default:
			put(end-1, end-1, ","+usage)
		}
	}
	if _, err := d.ReadToken(); err != nil { // the end of the object
		return false
	}
	if end := int(d.InputOffset()) - 1; !found && empty {
		put(end, end, `"stream_options":{`+usage+"}")
	} else if !found {
		put(end, end, `,"stream_options":{`+usage+"}")
	}
	return true
}

// nameOf returns the name that a text of JSON is; "" for one that is longer than any that matters, so that it is not
// copied.
func nameOf(text []byte) string {
	if len(text) > 256 {
		return ""
	}
	name, _ := jsontext.AppendUnquote(nil, text) // an error says that it is no UTF-8
	return string(name)
}
