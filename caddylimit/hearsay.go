package caddylimit

import (
	"io"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// trusts reports whether a request is from a trusted proxy of the server.
func trusts(r *http.Request) bool {
	trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
	return trusted
}

// A hearsay has the canonical names of the fields in which trusted proxies say limits. A server behind this one, which
// trusts it, would trust what a client has written there.
type hearsay []string

// remove removes from a request the fields that must not come from a client, also those of its trailer. Other spellings
// that servers may take for such a field are removed from requests of trusted proxies, too, because a proxy may pass
// them on as its client sent them.
func (h hearsay) remove(r *http.Request) {
	if len(h) == 0 {
		return
	}
	trusted := trusts(r)
	h.from(r.Header, trusted)
	if r.Trailer == nil { // none was announced, and so none is passed on
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

// reads reports whether servers may take the name of a field for another: letters and digits are the same, and both
// have something else at the same places.
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

// plain returns a letter or a digit, with letters as small ones, and a hyphen for all else.
func plain(c byte) byte {
	switch {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		return c
	case 'A' <= c && c <= 'Z':
		return c | 0x20
	}
	return '-'
}

// A trailing is a body that reports when the trailer behind it has arrived.
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
