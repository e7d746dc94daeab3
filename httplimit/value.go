package httplimit

import (
	"net/http"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit/reading"
)

// HeaderValue returns the value of a header, or "" if the header is absent. The name must be in the form of
// [http.CanonicalHeaderKey]. ok is false if the header has several different lines, because servers differ in which
// line they read. For Authorization, the spelling of the scheme and of the blanks does not matter: the value is, for
// example, "Bearer V". HeaderValue does not allocate for a value that is already in this form.
func HeaderValue(r *http.Request, name string) (value string, ok bool) {
	return reading.HeaderKey(r, name)
}

// CookieValue returns the value of a cookie, or "" if the cookie is absent. ok is false in these cases:
//
//   - The cookie occurs several times with different values.
//   - Its value has a zero byte, or a comma or blank outside of quotes, at which some servers end the value.
//   - There are more than 2,048 cookies.
//
// CookieValue accepts all other characters, because some servers accept values that [http.Request.Cookie] skips.
//
// Some spellings have the same value for common servers: with quotes, octal escapes in quotes, percent escapes, or
// Unicode blanks around the value. CookieValue returns the same text for all of them. It also treats spellings of the
// name as equal: SID is sid, and a.b is a_b. A pair after a comma or a blank is a separate cookie. CookieValue does not
// allocate if nothing is escaped.
func CookieValue(r *http.Request, name string) (value string, ok bool) {
	return reading.CookieKey(r, name)
}

// ambiguousKey returns the key that is shared by all requests with several values or with an opaque target. It is not
// the key of any text or address.
func ambiguousKey(h Hasher) (engine.Key, bool) { return h.KeyUint64(0), true }
