package caddylimit

import (
	"io"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func trusts(r *http.Request) bool {
	trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
	return trusted
}

// A hearsay contains the canonical names of the fields in which trusted proxies send limits. Such a field of a client
// must not be passed on, because servers behind this server would trust it.
type hearsay []string

// remove removes the fields of h from header and trailer, unless a trusted proxy sent the request. Some servers treat
// other names as the names of these fields. remove always removes fields with such names, because the proxy may have
// passed them on from its client.
func (h hearsay) remove(r *http.Request) {
	if len(h) == 0 {
		return
	}
	trusted := trusts(r)
	h.from(r.Header, trusted)
	if r.Trailer == nil { // no trailer was announced, so no trailer is passed on
		return
	}
	h.from(r.Trailer, trusted)
	if r.Body != nil {
		r.Body = &trailing{ReadCloser: r.Body, received: func() { h.from(r.Trailer, trusted) }}
	}
}

func (h hearsay) from(fields http.Header, trusted bool) {
	for name := range fields {
		if !(trusted && slices.Contains(h, name)) && slices.ContainsFunc(h, func(of string) bool { return reads(name, of) }) {
			delete(fields, name)
		}
	}
}

// reads reports whether some servers may treat a field name as another field name. This is the case if the letters and
// digits of the two names are the same, and all other characters are at the same positions.
func reads(name, as string) bool {
	if len(name) != len(as) {
		return false
	}
	for i := range len(name) {
		if plain(name[i]) != plain(as[i]) {
			return false
		}
	}
	return true
}

// plain returns the lower case of a letter, and a digit unchanged. For any other character, it returns a hyphen.
func plain(c byte) byte {
	switch {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		return c
	case 'A' <= c && c <= 'Z':
		return c | 0x20
	}
	return '-'
}

// A trailing is a body that reports when the trailer after it has arrived.
type trailing struct {
	io.ReadCloser
	received func()
}

// Read implements [io.Reader].
func (t *trailing) Read(p []byte) (n int, err error) {
	if n, err = t.ReadCloser.Read(p); err == io.EOF {
		t.received()
	}
	return n, err
}
