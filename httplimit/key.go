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

// Header returns a KeyFunc whose key is the value of a request header, such as X-API-Key. If the header is absent or
// empty, fallback makes the key. With a nil fallback, the limit does not apply to such requests. Since a client could
// then avoid the limit by omitting the header, give a fallback, such as [ClientIP.Key].
//
// Requests with several different lines of the header ([HeaderValue]) all share one key. Otherwise a client could add
// lines to get a new bucket for every request. Verify the header's value before the limit, because each made-up value
// gets a fresh bucket.
//
// Header returns an error for an invalid or empty name. It also returns an error for the names Host, Trailer and
// Transfer-Encoding, which net/http does not keep among the headers.
func Header(name string, fallback KeyFunc) (KeyFunc, error) {
	if !isToken(name) {
		return nil, fmt.Errorf("httplimit: Header(%q): want the name of an HTTP header, such as X-API-Key", name)
	}
	canonical := http.CanonicalHeaderKey(name)
	switch canonical {
	case "Host", "Trailer", "Transfer-Encoding":
		return nil, fmt.Errorf("httplimit: Header(%q): net/http removes this header from the request: want another",
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
		return ambiguousKey(h)
	case value != "":
		return h.Key(value), true
	}
	return fallback.Or(h, r)
}

// Cookie returns a KeyFunc whose key is the value of a cookie ([CookieValue]). If the cookie is absent, empty or has
// several values, Cookie does what [Header] does for such a header. Cookie returns an error for a name that is not
// valid for a cookie.
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

// Path is a KeyFunc whose key is the decoded path. A client can make up paths, or spell a path in several ways ("/a",
// "/a/"). Each path and spelling has its own bucket. So use Path only within [Join], and only if there are few paths or
// if other paths are refused before.
//
// A target such as "http:a/login" has an opaque part ([net/url.URL.Opaque]) instead of a path. All requests with such a
// target share one key. Answer them with 400. Otherwise [net/http/httputil.ReverseProxy] passes the opaque part on,
// although a limit for a path does not match it.
func Path(h Hasher, r *http.Request) (engine.Key, bool) {
	if r.URL.Opaque != "" {
		return ambiguousKey(h)
	}
	return h.Key(r.URL.Path), true
}

// Method is a KeyFunc whose key is the request method. Upper and lower case are the same, because many servers accept
// "post" as POST. Methods without a constant in net/http share one key, so that made-up methods share a bucket. A
// header field such as X-HTTP-Method-Override may name another method, and some servers obey it. All requests with such
// a field share a further key.
func Method(h Hasher, r *http.Request) (engine.Key, bool) {
	if reading.IsOverridden(r) {
		return ambiguousKey(h)
	}
	switch method := strings.ToUpper(r.Method); method { // no allocation for upper case
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return h.Key(method), true
	case "":
		return h.Key(http.MethodGet), true
	}
	return h.Key("other"), true
}

// Host is a KeyFunc whose key is the requested host in lower case, without its port. A client can ask for any host, so
// check the host before the limit. For an outgoing request ([Middleware.RoundTripper]), the key is the host of the URL.
func Host(h Hasher, r *http.Request) (engine.Key, bool) {
	host := r.Host
	if host == "" && r.RequestURI == "" && r.URL != nil { // a request to be sent
		host = r.URL.Host
	}
	return h.Key(spelling.Host(host)), true
}

// Join returns a KeyFunc whose key has several parts, for example for a limit per user and path. The parts ("a", "bc")
// and ("ab", "c") make different keys. If one part says that the limit does not apply, the limit does not apply. Join
// itself does not allocate for a request.
//
// Every part must make its key with the given [Hasher]; otherwise it counts as the empty text.
func Join(parts ...KeyFunc) KeyFunc { return limits.Join(parts...) }

// isToken reports whether s is a token of RFC 9110, like the names of headers and cookies.
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}
