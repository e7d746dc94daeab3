package httplimit

import (
	"net/http"
	"strings"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/spelling"
)

// HeaderValue returns the value of a header, "" if it is absent. name is in the form of [http.CanonicalHeaderKey]. It
// is not ok if the header has several lines that differ: servers read the first, the last, or all of them, so no line
// identifies the client. The value of Authorization is "Bearer V" however the scheme and the blanks are written. It
// does not allocate for a value that is written so.
func HeaderValue(r *http.Request, name string) (value string, ok bool) {
	return spelling.OneLine(name, r.Header[name])
}

// CookieValue returns the value of a cookie, "" if it is absent. It is not ok if the cookie is there several times with
// values that differ, or if there is a comma or a blank in its value outside of quotes, where some servers end it and
// some do not. Unlike [http.Request.Cookie] it reads values with any other characters, and any number of cookies: what
// it passed over, a server might read.
//
// All spellings that a common server takes for one value come to one text: with quotes, with octal escapes in them,
// with percent escapes, and with blanks of Unicode around. So do the spellings of the name: SID is sid, and a.b is a_b;
// and a pair behind a comma or a blank is one of its own. It does not allocate where nothing is escaped.
func CookieValue(r *http.Request, name string) (value string, ok bool) {
	found := false
	for _, line := range r.Header["Cookie"] {
		for more := true; more; {
			var pair string
			pair, line, more = strings.Cut(line, ";")
			pairName, raw, _ := strings.Cut(pair, "=") // for a server that goes by semicolons alone
			for inside := pair; ; {
				if spelling.SameName(spelling.TrimBlanks(pairName), name) {
					got, whole := spelling.CookieValue(raw)
					if !whole || found && got != value {
						return "", false
					}
					value, found = got, true
				}
				if pairName, raw, inside = innerCookie(inside); inside == "" {
					break
				}
			}
		}
	}
	return value, true
}

const blanks = " \t"

// innerCookie returns the first pair in a text that has a comma or a blank before it, and the text from that pair on;
// "" after the last.
func innerCookie(text string) (name, value, from string) {
	const separators = "," + blanks
	for {
		next := strings.IndexAny(text, separators)
		if next < 0 {
			return "", "", ""
		}
		text = strings.TrimLeft(text[next:], separators)
		end := strings.IndexAny(text, "="+separators)
		if end < 0 {
			return "", "", ""
		}
		if behind := strings.TrimLeft(text[end:], blanks); strings.HasPrefix(behind, "=") {
			value = strings.TrimLeft(behind[1:], blanks)
			if stop := strings.IndexAny(value, separators); stop >= 0 {
				value = value[:stop]
			}
			return text[:end], value, text
		}
	}
}

// ambiguous returns the key of all requests with several values of a header or cookie, or with an opaque target. No
// text and no address has it.
func ambiguous(h Hasher) (engine.Key, bool) { return h.KeyUint64(0), true }
