package httplimit

import (
	"net/http"
	"strings"

	"github.com/weir-go/weir/engine"
)

// HeaderValue returns the value of a header, "" if it is absent. name is in the form of [http.CanonicalHeaderKey]. It
// is not ok if the header has several lines that differ: servers read the first, the last, or all of them, so no line
// says who the client is. It does not allocate.
func HeaderValue(r *http.Request, name string) (value string, ok bool) {
	lines := r.Header[name]
	if len(lines) == 0 {
		return "", true
	}
	for _, line := range lines[1:] {
		if line != lines[0] {
			return "", false
		}
	}
	return lines[0], true
}

// CookieValue returns the value of a cookie without the quotes around it, "" if it is absent. It is not ok if the
// cookie is there several times with values that differ. Unlike [http.Request.Cookie] it reads values with any
// characters, and any number of cookies: what it passed over, a server might read. It does not allocate.
func CookieValue(r *http.Request, name string) (value string, ok bool) {
	found := false
	for _, line := range r.Header["Cookie"] {
		for more := true; more; {
			var pair string
			pair, line, more = strings.Cut(line, ";")
			pairName, pairValue, _ := strings.Cut(pair, "=")
			if strings.Trim(pairName, " \t") != name {
				continue
			}
			pairValue = strings.Trim(pairValue, " \t")
			if n := len(pairValue); n > 1 && pairValue[0] == '"' && pairValue[n-1] == '"' {
				pairValue = pairValue[1 : n-1]
			}
			if found && pairValue != value {
				return "", false
			}
			value, found = pairValue, true
		}
	}
	return value, true
}

// ambiguous returns the key of all requests with several values of a header or cookie, or with an opaque target. No
// text and no address has it.
func ambiguous(h Hasher) (engine.Key, bool) { return h.KeyUint64(0), true }
