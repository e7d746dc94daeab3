package httplimit

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit/reading"
	"github.com/weir-go/weir/internal/spelling"
	"github.com/weir-go/weir/limits"
)

// Header returns the KeyFunc of a request header, such as X-API-Key, which falls back to another where the header is
// absent or empty. A nil fallback leaves such requests unlimited by this limit. A client that may leave the header out
// then has no limit, so give one, such as [ClientIP.Key].
//
// All requests in which the header has several lines that differ ([HeaderValue]) have one key together. A server may
// read another line than the limit, so with the first line as the key a client could have a new bucket for every
// request.
//
// Use a header that is checked in front of the limit: where the client can make up values, each is
// a fresh bucket.
//
// An empty name, one that is not a header's, and one that net/http does not keep among the
// headers (Host, Trailer, Transfer-Encoding) are errors.
func Header(name string, fallback KeyFunc) (KeyFunc, error) {
	if !isToken(name) {
		return nil, fmt.Errorf("httplimit: Header(%q): want the name of an HTTP header, such as X-API-Key", name)
	}
	canonical := http.CanonicalHeaderKey(name)
	switch canonical {
	case "Host", "Trailer", "Transfer-Encoding":
		return nil, fmt.Errorf("httplimit: Header(%q): net/http takes this header out of the request: want another",
			name)
	}
	return func(h Hasher, r *http.Request) (engine.Key, bool) {
		return valueKey(h, r, canonical, HeaderValue, fallback)
	}, nil
}

// valueKey returns the key of a header or cookie.
func valueKey(h Hasher, r *http.Request, name string, read func(*http.Request, string) (string, bool),
	fallback KeyFunc) (engine.Key, bool) {
	switch value, ok := read(r, name); {
	case !ok:
		return ambiguous(h)
	case value != "":
		return h.Key(value), true
	}
	return fallback.Or(h, r)
}

// Cookie returns the KeyFunc of a cookie's value ([CookieValue]), which falls back to another as that of [Header] does,
// and like that has one key for all requests with several values. A name that cannot be a cookie's is an error.
func Cookie(name string, fallback KeyFunc) (KeyFunc, error) {
	if !isToken(name) {
		return nil, fmt.Errorf("httplimit: Cookie(%q): want the name of a cookie", name)
	}
	return func(h Hasher, r *http.Request) (engine.Key, bool) {
		return valueKey(h, r, name, CookieValue, fallback)
	}, nil
}

// Everyone is the KeyFunc of a global limit: all requests have one key.
func Everyone(h Hasher, _ *http.Request) (engine.Key, bool) { return h.KeyUint64(0), true }

// Path is the KeyFunc of the decoded path. Clients can make up paths, each a bucket of its own,
// and write one in several ways ("/a", "/a/"); so limit by it only where the paths are few or
// checked, and with [Join].
//
// A target such as "http:a/login" has no path but an opaque part ([net/url.URL.Opaque]), which
// [net/http/httputil.ReverseProxy] passes on as it is. All such requests have one key together. Answer them 400, as
// weir serve does: a limit that is for a path does not see one.
func Path(h Hasher, r *http.Request) (engine.Key, bool) {
	if r.URL.Opaque != "" {
		return ambiguous(h)
	}
	return h.Key(r.URL.Path), true
}

// Method is the KeyFunc of the request method. All methods that net/http has no name for are
// one, so that made-up ones have one bucket together. Upper and lower case are one method, because many servers take
// "post" for POST. All requests that name another method in a field of the header that some servers take for the
// method, such as X-HTTP-Method-Override, have one key together.
func Method(h Hasher, r *http.Request) (engine.Key, bool) {
	if reading.IsOverridden(r) {
		return ambiguous(h)
	}
	switch method := strings.ToUpper(r.Method); method { // no allocation for capitals
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return h.Key(method), true
	case "":
		return h.Key(http.MethodGet), true
	}
	return h.Key("other"), true
}

// Host is the KeyFunc of the host that was asked for, without its port, in lower case. A client can
// ask for any host: check it first. Of a request that the program sends ([Middleware.RoundTripper]) it is the host of
// the URL.
func Host(h Hasher, r *http.Request) (engine.Key, bool) {
	host := r.Host
	if host == "" && r.RequestURI == "" && r.URL != nil { // a request to be sent
		host = r.URL.Host
	}
	return h.Key(spelling.Host(host)), true
}

// Join returns the KeyFunc of several parts together: a limit per user and path, say. Each part
// goes in with its kind and length, so ("a", "bc") and ("ab", "c") differ. Where one of the
// parts says that the limit does not apply, it does not. It does not allocate, beyond what the
// parts do.
//
// Every part must make its key with the [Hasher] that it is given; one that does not counts
// as the empty text.
func Join(parts ...KeyFunc) KeyFunc { return limits.Join(parts...) }

// isToken reports whether s is a token of RFC 9110, as names of headers and cookies are.
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}
