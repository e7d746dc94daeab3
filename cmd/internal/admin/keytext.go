package admin

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

func hashText(hash uint64) string { return fmt.Sprintf("%016x", hash) }

func parseHash(text string) (uint64, bool) {
	hash, err := strconv.ParseUint(text, 16, 64)
	return hash, err == nil && len(text) == 16
}

func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	// The text can be the start of a header field of up to a megabyte. A copy lets the memory of the field be freed.
	return strings.Clone(strings.ToValidUTF8(text[:maxText], "")) + "…"
}

// readable returns the text of a key for people, with a dot between the parts of a joined key. It escapes characters
// that cannot be printed, so that no key can look like another.
func readable(text string, labels []string) string {
	parts := []string{text}
	if len(labels) > 1 {
		if unjoined := unjoin(text); unjoined != nil {
			parts = unjoined
		}
	}
	if len(parts) == len(labels) {
		for i := range parts {
			parts[i] = withName(parts[i], labels[i])
		}
	}
	text = strings.Join(parts, " · ")
	for i, r := range text {
		if !strconv.IsPrint(r) || r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
			quoted := strconv.Quote(text)
			return quoted[1 : len(quoted)-1]
		}
	}
	return text
}

// withName returns a key part with its name: "X-Api-Key: secret" for "text:secret" with the label
// "header:X-Api-Key or ip". An address keeps its "ip:".
func withName(part, label string) string {
	value, found := strings.CutPrefix(part, "text:")
	if !found {
		return part
	}
	source, _, _ := strings.Cut(label, " ")
	if name, found := strings.CutPrefix(source, "header:"); found {
		return name + ": " + value
	}
	if name, found := strings.CutPrefix(source, "cookie:"); found {
		return "cookie " + name + ": " + value
	}
	return source + " " + value
}

// unjoin splits a text of httplimit.Join: "text:" and then each part after its length, as in
// "text:9:text:key111:ip:192.0.2.1". The last part may be clipped. For another form, unjoin returns nil.
func unjoin(text string) (parts []string) {
	rest, ok := strings.CutPrefix(text, "text:")
	for ok && rest != "" {
		var length string
		length, rest, ok = strings.Cut(rest, ":")
		n, err := strconv.Atoi(length)
		if !ok || err != nil || n < 0 {
			return nil
		}
		n = min(n, len(rest))
		parts, rest = append(parts, rest[:n]), rest[n:]
	}
	return parts
}
