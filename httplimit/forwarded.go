package httplimit

import "strings"

// lastComma returns the index of the last comma outside of quoted strings in a Forwarded header (RFC 7239), or -1.
// After this comma, the last element begins. lastComma reads from the right. If it read from the left, a quote that a
// client left open would hide the element that a proxy appended.
func lastComma(list string) int {
	quoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch list[i] {
		case '"':
			quoted = quoted != !escaped(list, i)
		case ',':
			if !quoted {
				return i
			}
		}
	}
	return -1
}

// escaped reports whether the character at i is escaped by a backslash.
func escaped(s string, i int) bool {
	n := 0
	for i--; i >= 0 && s[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// forwardedFor returns the parameter "for" of an element of a Forwarded header, without quotes. ok is false if the
// element is malformed, or if the number of its "for" parameters is not one.
func forwardedFor(element string) (node string, ok bool) {
	found := false
	for more := true; more; {
		var pair string
		pair, element, more = cutPair(element)
		name, value, isPair := strings.Cut(strings.Trim(pair, " \t"), "=")
		if !isPair {
			if pair == "" && more { // RFC 7239 allows an empty pair
				continue
			}
			return "", false
		}
		if value, isPair = unquote(value); !isPair {
			return "", false
		}
		if strings.EqualFold(name, "for") {
			if found {
				return "", false
			}
			node, found = value, true
		}
	}
	return node, found
}

// cutPair cuts the first pair off an element. The pair ends at a semicolon that is not in a quoted string.
func cutPair(element string) (pair, rest string, more bool) {
	quoted := false
	for i := 0; i < len(element); i++ {
		switch c := element[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ';' && !quoted:
			return element[:i], element[i+1:], true
		}
	}
	return element, "", false
}

// unquote returns the text of a token or quoted string. Tokens may have colons and brackets, because some proxies omit
// quotes.
func unquote(value string) (string, bool) {
	if !strings.HasPrefix(value, `"`) {
		return value, value != "" && strings.IndexByte(value, '"') < 0
	}
	if len(value) < 2 || value[len(value)-1] != '"' {
		return "", false
	}
	value = value[1 : len(value)-1]
	if strings.IndexByte(value, '"') < 0 && strings.IndexByte(value, '\\') < 0 {
		return value, true
	}
	text := make([]byte, 0, len(value))
	for i := 0; i < len(value); i++ {
		if value[i] == '"' {
			return "", false
		}
		if value[i] == '\\' {
			if i++; i == len(value) {
				return "", false
			}
		}
		text = append(text, value[i])
	}
	return string(text), true
}
