package live

import (
	"fmt"
	"strconv"
	"strings"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
)

const entrySeparator = " · "

// text returns the entries of a descriptor in a form for people: key=value · key=value. Special characters are quoted.
// So different descriptors have different texts, and parse can read each text.
func text(d *commonv3.RateLimitDescriptor) string {
	var b strings.Builder
	for i, e := range d.GetEntries() {
		if i > 0 {
			b.WriteString(entrySeparator)
		}
		b.WriteString(quote(e.GetKey()) + "=" + quote(e.GetValue()))
	}
	return b.String()
}

func quote(s string) string {
	for _, r := range s {
		if r <= ' ' || r == '=' || r == '"' || r == '·' || r == '\\' || !strconv.IsPrint(r) || r == '\uFFFD' {
			return strconv.Quote(s)
		}
	}
	return s
}

func parse(input string) (*commonv3.RateLimitDescriptor, error) {
	d := &commonv3.RateLimitDescriptor{}
	for remaining := input; ; {
		key, rest, ok := cutWord(remaining, "=")
		if rest, ok = found(rest, "=", ok); !ok {
			break
		}
		var value string
		if value, rest, ok = cutWord(rest, entrySeparator); !ok {
			break
		}
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
		if rest == "" {
			return d, nil
		}
		if remaining, ok = found(rest, entrySeparator, true); !ok {
			break
		}
	}
	return nil, fmt.Errorf("%q is not a list of entries", input)
}

// cutWord splits the first key or value from a text. If it is not in quotes, it ends at the separator or at the end of
// the text.
func cutWord(text, separator string) (cutWord, rest string, ok bool) {
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", "", false
		}
		cutWord, err = strconv.Unquote(quoted)
		return cutWord, text[len(quoted):], err == nil
	}
	i := strings.Index(text, separator)
	if i < 0 {
		i = len(text)
	}
	return text[:i], text[i:], true
}

func found(text, separator string, ok bool) (rest string, found bool) {
	rest, found = strings.CutPrefix(text, separator)
	return rest, found && ok
}
