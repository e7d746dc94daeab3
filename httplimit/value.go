package httplimit

import (
	"net/http"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit/reading"
)

// HeaderValue returns the value of a header, "" if it is absent. name is in the form of [http.CanonicalHeaderKey]. It
// is not ok if the header has several lines that differ: servers read the first, the last, or all of them, so no line
// identifies the client. The value of Authorization is "Bearer V" however the scheme and the blanks are written. It
// does not allocate for a value that is written so.
func HeaderValue(r *http.Request, name string) (value string, ok bool) {
	return reading.HeaderKey(r, name)
}

// CookieValue returns the value of a cookie, "" if it is absent. It is not ok if the cookie is there several times with
// values that differ, if there is a zero byte in its value, or a comma or a blank outside of quotes, where some servers
// end it and some do not, or if there are more than 2,048 cookies. Unlike [http.Request.Cookie] it reads values with
// any other characters: what it passed over, a server might read.
//
// All spellings that a common server takes for one value come to one text: with quotes, with octal escapes in them,
// with percent escapes, and with blanks of Unicode around. So do the spellings of the name: SID is sid, and a.b is a_b;
// and a pair behind a comma or a blank is one of its own. It does not allocate where nothing is escaped.
func CookieValue(r *http.Request, name string) (value string, ok bool) {
	return reading.CookieKey(r, name)
}

// ambiguous returns the key of all requests with several values of a header or cookie, or with an opaque target. No
// text and no address has it.
func ambiguous(h Hasher) (engine.Key, bool) { return h.KeyUint64(0), true }
