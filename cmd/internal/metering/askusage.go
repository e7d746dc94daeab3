package metering

import (
	"bytes"
	"encoding/json"
	"errors"
)

// askForUsage returns the body of a request with stream_options.include_usage; false if it is no object, or its
// stream_options are none. Nothing else is changed.
func askForUsage(body []byte) (asking []byte, ok bool) {
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	from, found := int64(0), false
	var out []byte
	empty := true
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil, false
		}
		if empty = false; key != "stream_options" {
			continue
		}
		end := d.InputOffset()
		with, err := withUsage(value)
		if err != nil {
			return nil, false
		}
		found = true
		out = append(append(out, body[from:end-int64(len(value))]...), with...)
		from = end
	}
	if _, err := d.Token(); err != nil { // the end of the object
		return nil, false
	}
	end := d.InputOffset() - 1
	out = append(out, body[from:end]...)
	if !found {
		if !empty {
			out = append(out, ',')
		}
		out = append(out, `"stream_options":{"include_usage":true}`...)
	}
	return append(out, body[end:]...), true
}

var errNoOptions = errors.New("stream_options is no object")

// withUsage returns an object with include_usage as its last member, which servers take if there are two.
func withUsage(options json.RawMessage) ([]byte, error) {
	const usage = `"include_usage":true}`
	trimmed := bytes.TrimSpace(options)
	switch {
	case string(trimmed) == "null":
		return []byte("{" + usage), nil
	case len(trimmed) == 0 || trimmed[0] != '{':
		return nil, errNoOptions
	}
	inside := bytes.TrimSpace(trimmed[1 : len(trimmed)-1])
	out := append([]byte{'{'}, inside...)
	if len(inside) > 0 {
		out = append(out, ',')
	}
	return append(out, usage...), nil
}
