package httplimit

import (
	"net/http"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit/reading"
)

// HeaderValue returns the value of a header, "" if it is absent. name is in the form of [http.CanonicalHeaderKey]. ok
// is false if the header has several different lines: servers read the first, the last, or all of them, so no line
// identifies the client. The value of Authorization is "Bearer V", however the scheme and the blanks are written.
// HeaderValue does not allocate for a value that is already written like this.
func HeaderValue(r *http.Request, name string) (value string, ok bool) {
	return reading.HeaderKey(r, name)
}

// CookieValue returns the value of a cookie, "" if it is absent. ok is false in these cases:
//
//   - The cookie occurs several times with different values.
//   - Its value has a zero byte, or has a comma or a blank outside of quotes, where some servers end the value and some
//     do not.
//   - There are more than 2,048 cookies.
//
// Unlike [http.Request.Cookie] it accepts all other characters in values, because a server might read a value that it
// skips.
//
// All spellings that common servers treat as the same value give the same text: with quotes, with octal escapes in
// quotes, with percent escapes, and with Unicode blanks around the value. The same holds for the spellings of the name:
// SID is sid, and a.b is a_b. A pair after a comma or a blank counts as a separate pair. CookieValue does not allocate
// if nothing is escaped.
func CookieValue(r *http.Request, name string) (value string, ok bool) {
	return reading.CookieKey(r, name)
}

// ambiguous returns the key of all requests with several values of a header or cookie, or with an opaque target. No
// text and no address has this key.
func ambiguous(h Hasher) (engine.Key, bool) { return h.KeyUint64(0), true }
