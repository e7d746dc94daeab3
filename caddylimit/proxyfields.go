package caddylimit

import (
	"io"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func isTrusted(r *http.Request) bool {
	trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
	return trusted
}

// proxyFields are the canonical names of the fields in which trusted proxies send limits. Such a field of a client must
// not be passed on, because servers behind this server would trust it.
type proxyFields []string

// remove removes the fields from header and trailer, unless a trusted proxy sent the request. Some servers treat
// other names as the names of these fields. remove always removes fields with such names, because the proxy may have
// passed them on from its client.
func (h proxyFields) remove(r *http.Request) {
	if len(h) == 0 {
		return
	}
	trusted := isTrusted(r)
	h.removeFrom(r.Header, trusted)
	if r.Trailer == nil { // no trailer was announced, so no trailer is passed on
		return
	}
	h.removeFrom(r.Trailer, trusted)
	if r.Body != nil {
		r.Body = &trailerBody{ReadCloser: r.Body, onTrailer: func() { h.removeFrom(r.Trailer, trusted) }}
	}
}

func (h proxyFields) removeFrom(fields http.Header, trusted bool) {
	for name := range fields {
		if !(trusted && slices.Contains(h, name)) && slices.ContainsFunc(h, func(field string) bool { return isReadAs(name, field) }) {
			delete(fields, name)
		}
	}
}

// isReadAs reports whether some servers may treat a field name as another field name. This is the case if the letters
// and digits of the two names are the same, and all other characters are at the same positions.
func isReadAs(name, field string) bool {
	if len(name) != len(field) {
		return false
	}
	for i := range len(name) {
		if normalize(name[i]) != normalize(field[i]) {
			return false
		}
	}
	return true
}

// normalize returns the lower case of a letter, and a digit unchanged. For any other character, it returns a hyphen.
func normalize(c byte) byte {
	switch {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		return c
	case 'A' <= c && c <= 'Z':
		return c | 0x20
	}
	return '-'
}

// A trailerBody is a body that calls onTrailer when the trailer after it has arrived.
type trailerBody struct {
	io.ReadCloser
	onTrailer func()
}

// Read implements [io.Reader].
func (t *trailerBody) Read(p []byte) (n int, err error) {
	if n, err = t.ReadCloser.Read(p); err == io.EOF {
		t.onTrailer()
	}
	return n, err
}
