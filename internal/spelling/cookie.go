package spelling

import "strings"

// CookieValue returns a canonical text for the value of a cookie. If some common server reads several spellings as the
// same value, all these spellings have the same text. These spellings of V have one text:
//
//   - V, and every other value for which [Value] returns the same text
//   - "V" in quotes, and "Vx without a second quote, because Node's cookie package removes the first and the last
//     character
//   - "\126", in quotes with the octal escapes of Python
//   - %56 with the escapes that PHP, Node and ASP.NET undo
//   - j:"V", the JSON of Express's cookie-parser
//
// ok is false if the value has a comma or a blank outside of quotes, unless the value is JSON after j: as above.
// ASP.NET Core, Perl and Python's http.cookies end the value at this character, and most other servers do not. ok is
// also false if the value has a zero byte. CookieValue does not allocate for a value of letters, digits and similar
// characters.
func CookieValue(raw string) (value string, ok bool) {
	raw = TrimBlanks(raw)
	quoted := strings.HasPrefix(raw, `"`) && len(raw) > 1
	if quoted {
		raw = unquote(raw)
	}
	value = Unescape(raw)
	switch text, isJSON := jsonCookie(value); {
	case isJSON:
		value = text
	case !quoted && strings.ContainsAny(raw, ", \t"):
		return "", false
	}
	return Value(value)
}

// unquote returns the text between quotes, without backslash escapes. If the second quote is missing, the last
// character is treated as the quote.
func unquote(raw string) string {
	end := 1
	for end < len(raw) && raw[end] != '"' {
		if raw[end] == '\\' {
			end++
		}
		end++
	}
	content := raw[1:min(end, len(raw)-1)]
	if !strings.Contains(content, `\`) {
		return content
	}
	plain := make([]byte, 0, len(content))
	for i := 0; i < len(content); i++ {
		if content[i] == '\\' && i+1 < len(content) {
			i++
			if digits := content[i:]; len(digits) >= 3 && digits[0] <= '3' && isOctal(digits[0]) && isOctal(digits[1]) &&
				isOctal(digits[2]) {
				plain = append(plain, (digits[0]-'0')<<6|(digits[1]-'0')<<3|(digits[2]-'0'))
				i += 2
				continue
			}
		}
		plain = append(plain, content[i])
	}
	return string(plain)
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }
