package live

import (
	"fmt"
	"strconv"
	"strings"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
)

const between = " · "

// text returns the entries of a descriptor in a form for people: key=value · key=value. Special characters are quoted.
// So different descriptors have different texts, and parse can read each text.
func text(d *commonv3.RateLimitDescriptor) string {
	var b strings.Builder
	for i, e := range d.GetEntries() {
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(quoted(e.GetKey()) + "=" + quoted(e.GetValue()))
	}
	return b.String()
}

func quoted(s string) string {
	for _, r := range s {
		if r <= ' ' || r == '=' || r == '"' || r == '·' || r == '\\' || !strconv.IsPrint(r) || r == '\uFFFD' {
			return strconv.Quote(s)
		}
	}
	return s
}

func parse(from string) (*commonv3.RateLimitDescriptor, error) {
	d := &commonv3.RateLimitDescriptor{}
	for rest := from; ; {
		key, behind, ok := word(rest, "=")
		if behind, ok = cut(behind, "=", ok); !ok {
			break
		}
		var value string
		if value, behind, ok = word(behind, between); !ok {
			break
		}
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
		if behind == "" {
			return d, nil
		}
		if rest, ok = cut(behind, between, true); !ok {
			break
		}
	}
	return nil, fmt.Errorf("%q is not a list of entries", from)
}

// word splits the first key or value from a text. If it is not in quotes, it ends at the separator or at the end of the
// text.
func word(from, separator string) (word, rest string, ok bool) {
	if strings.HasPrefix(from, `"`) {
		quoted, err := strconv.QuotedPrefix(from)
		if err != nil {
			return "", "", false
		}
		word, err = strconv.Unquote(quoted)
		return word, from[len(quoted):], err == nil
	}
	i := strings.Index(from, separator)
	if i < 0 {
		i = len(from)
	}
	return from[:i], from[i:], true
}

func cut(from, separator string, ok bool) (rest string, cut bool) {
	rest, cut = strings.CutPrefix(from, separator)
	return rest, cut && ok
}
