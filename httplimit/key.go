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
// empty, fallback makes the key. With a nil fallback, the limit does not apply to such requests, so a client that omits
// the header has no limit. Therefore give a fallback, such as [ClientIP.Key].
//
// All requests in which the header has several different lines ([HeaderValue]) share one key. The reason is that the
// server may use another line than the limit uses. If the first line were the key, a client could get a new bucket for
// every request.
//
// Use a header whose value is verified before the limit, because each value that a client makes up would get a fresh
// bucket.
//
// Header returns an error for an empty name, for a name that is not valid for a header, and for a name that net/http
// does not keep among the headers (Host, Trailer, Transfer-Encoding).
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
		return ambiguous(h)
	case value != "":
		return h.Key(value), true
	}
	return fallback.Or(h, r)
}

// Cookie returns a KeyFunc whose key is the value of a cookie ([CookieValue]). If the cookie is absent or empty,
// fallback makes the key, as for [Header]. As with Header, all requests with several values share one key. Cookie
// returns an error for a name that is not valid for a cookie.
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

// Path is a KeyFunc whose key is the decoded path. Clients can make up paths, and each path has its own bucket. They
// can also write one path in several ways ("/a", "/a/"). So use Path only as a part of [Join], and only if there are
// few paths or if a check before the limit refuses other paths.
//
// A target such as "http:a/login" has an opaque part ([net/url.URL.Opaque]) instead of a path, and
// [net/http/httputil.ReverseProxy] passes the opaque part on unchanged. All requests with such a target share one key.
// Answer these requests with 400, as weir serve does, because a limit for a path finds no path in them.
func Path(h Hasher, r *http.Request) (engine.Key, bool) {
	if r.URL.Opaque != "" {
		return ambiguous(h)
	}
	return h.Key(r.URL.Path), true
}

// Method is a KeyFunc whose key is the request method. All methods for which net/http has no constant share one key, so
// that made-up methods share one bucket. Case is ignored, because many servers accept "post" as POST. Some servers let
// a header field such as X-HTTP-Method-Override replace the method. All requests in which such a field names another
// method share one key.
func Method(h Hasher, r *http.Request) (engine.Key, bool) {
	if reading.IsOverridden(r) {
		return ambiguous(h)
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

// Host is a KeyFunc whose key is the requested host, without its port, in lower case. A client can ask for any host, so
// check the host before the limit. For a request that the program sends ([Middleware.RoundTripper]), the key is the
// host of the URL.
func Host(h Hasher, r *http.Request) (engine.Key, bool) {
	host := r.Host
	if host == "" && r.RequestURI == "" && r.URL != nil { // a request to be sent
		host = r.URL.Host
	}
	return h.Key(spelling.Host(host)), true
}

// Join returns a KeyFunc whose key has several parts, for example for a limit per user and path. The key contains the
// kind and the length of each part, so ("a", "bc") and ("ab", "c") differ. If one of the parts says that the limit does
// not apply, the limit does not apply. Join itself does not allocate for a request.
//
// Every part must make its key with the [Hasher] that it is given; otherwise the part counts as the empty text.
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
