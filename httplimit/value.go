package httplimit

import (
	"net/http"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit/reading"
)

// HeaderValue returns the value of a header, or "" if the header is absent. The parameter name must be in the form of
// [http.CanonicalHeaderKey]. ok is false if the header has several different lines. In that case no line identifies the
// client, because some servers read the first line, some read the last line, and some read all lines. For
// Authorization, all spellings of the scheme and the blanks give the same value, such as "Bearer V". HeaderValue does
// not allocate for a value that is already written like this.
func HeaderValue(r *http.Request, name string) (value string, ok bool) {
	return reading.HeaderKey(r, name)
}

// CookieValue returns the value of a cookie, or "" if the cookie is absent. ok is false in these cases:
//
//   - The cookie occurs several times with different values.
//   - Its value has a zero byte, or has a comma or a blank outside of quotes. Some servers end the value at such a
//     character, and some do not.
//   - There are more than 2,048 cookies.
//
// CookieValue accepts all other characters in values. [http.Request.Cookie] skips values with some of these characters,
// but a server might accept such a value.
//
// All spellings that common servers treat as the same value give the same text: with quotes, with octal escapes in
// quotes, with percent escapes, and with Unicode blanks around the value. Spellings of the name are treated in the same
// way: SID is sid, and a.b is a_b. A pair after a comma or a blank is read as a separate cookie. CookieValue does not
// allocate if nothing is escaped.
func CookieValue(r *http.Request, name string) (value string, ok bool) {
	return reading.CookieKey(r, name)
}

// ambiguous returns the key of all requests with several values of a header or cookie, or with an opaque target. No
// text and no address has this key.
func ambiguous(h Hasher) (engine.Key, bool) { return h.KeyUint64(0), true }
