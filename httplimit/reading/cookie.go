package reading

import (
	"net/http"
	"strings"

	"github.com/weir-go/weir/internal/spelling"
)

// readCookie returns the value of a cookie: see [CookieKey].
func readCookie(r *http.Request, name string) (value string, ok bool) {
	lines := r.Header["Cookie"]
	if tooManyCookies(lines) {
		return "", false
	}
	found, ok := false, true
	visit := func(cookie pair) {
		if !ok || !spelling.SameName(cookie.name, name) {
			return
		}
		got, valid := spelling.CookieValue(cookie.cookieValue())
		ok = valid && (!found || got == value)
		value, found = got, true
	}
	if p := parsedOf(r); p != nil {
		p.readCookies(lines)
		p.cookies.forEach(name, visit)
	} else {
		for _, line := range lines {
			eachCookie(line, visit)
		}
	}
	if !ok {
		return "", false
	}
	return value, true
}

// readCookies reads the names of all cookies. It is called once for a request.
func (p *Parsed) readCookies(lines []string) {
	if p.cookies.read {
		return
	}
	p.cookies.read = true
	for _, line := range lines {
		p.cookies.grow(1 + strings.Count(line, ";"))
	}
	for _, line := range lines {
		p.work += len(line) / 8
		eachCookie(line, func(cookie pair) {
			p.work += 1 + len(cookie.name)/8
			p.cookies.add(cookie.name, cookie)
		})
	}
}

const (
	blanks     = " \t"
	separators = "," + blanks
)

// eachCookie calls visit with every cookie that some server finds in a line. All servers split a line at
// semicolons. Some also split it at commas and blanks.
func eachCookie(line string, visit func(pair)) {
	for more := true; more; {
		var text string
		text, line, more = strings.Cut(line, ";")
		name, value, _ := strings.Cut(text, "=")
		visit(pair{name: spelling.TrimBlanks(name), value: value})
		begin := len(text) - len(strings.TrimLeft(text, blanks)) // where the name begins
		for at := begin; ; {
			next := strings.IndexByte(text[at:], '=')
			if next < 0 {
				break
			}
			at += next + 1
			end := at - 1
			for end > begin && isBlank(text[end-1]) {
				end--
			}
			start := end
			for start > begin && text[start-1] != '=' && text[start-1] != ',' && !isBlank(text[start-1]) {
				start--
			}
			if start > begin && start < end && text[start-1] != '=' {
				visit(pair{name: spelling.TrimBlanks(text[start:end]), value: text[at:], inner: true})
			}
		}
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// cookieValue returns the value of a cookie in the form in which it was sent.
func (p pair) cookieValue() string {
	if !p.inner {
		return p.value
	}
	value := strings.TrimLeft(p.value, blanks)
	if stop := strings.IndexAny(value, separators); stop >= 0 {
		return value[:stop]
	}
	return value
}
