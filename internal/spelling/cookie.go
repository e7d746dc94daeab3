package spelling

import "strings"

// CookieValue returns the one text of all the ways to write a value of a cookie that some common server reads alike:
//
//   - V, and what else is one [Value]
//   - "V" in quotes, and "Vx, of which Node's cookie package takes the first and the last character off
//   - "\126", in quotes with the octal escapes of Python
//   - %56 with the escapes that PHP, Node and ASP.NET undo
//   - j:"V", the JSON of Express's cookie-parser
//
// It is not ok if there is a comma or a blank in the value outside of quotes, unless it is such JSON: ASP.NET Core,
// Perl or Python's http.cookies end it there, and most others do not. Nor is it for a zero byte. It does not allocate
// for a value of letters, digits and the like.
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

// unquote returns what is between quotes, without the escapes of a backslash. Without a second quote the last character
// is taken for it.
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
