package spelling

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
)

// maxJSON is the longest JSON that is read in a cookie, in bytes. No browser stores a longer cookie.
const maxJSON = 4096

// jsonCookie returns the text of a cookie that Express's cookie-parser reads as JSON: "j:" and a JSON value. For a JSON
// string, the text is the string. For an object, it is the object's JSON with sorted names. For any other value, it is
// the string to which JavaScript converts the value. The second result is false if the cookie is not such a text, is
// too long, or has a value that JavaScript treats as false. In the last case, cookie-parser keeps the cookie's text.
func jsonCookie(s string) (text string, ok bool) {
	source, ok := strings.CutPrefix(s, "j:")
	if !ok || len(source) > maxJSON {
		return "", false
	}
	decoder := json.NewDecoder(strings.NewReader(utf8Of(source)))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return "", false
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return "", false
	}
	text = scriptText(value)
	switch value := value.(type) {
	case nil:
		return "", false
	case bool:
		return text, value
	case string:
		return text, value != ""
	case json.Number:
		return text, text != "0"
	}
	return text, true
}

// utf8Of converts a text from Latin-1 to UTF-8. Node reads a cookie as Latin-1, and a JSON decoder needs UTF-8. [Value]
// turns the characters into single bytes again.
func utf8Of(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// scriptText returns the string to which JavaScript converts a JSON value.
func scriptText(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(value)
	case string:
		return value
	case json.Number:
		return scriptNumber(value)
	case []any:
		parts := make([]string, len(value))
		for i, part := range value {
			if part != nil {
				parts[i] = scriptText(part)
			}
		}
		return strings.Join(parts, ",")
	}
	text, _ := json.Marshal(plainNumbers(value)) // no error: a decoded value can be encoded
	return string(text)
}

// plainNumbers rewrites the numbers in an object as JavaScript writes them.
func plainNumbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		if number := scriptNumber(value); number != infinity && number != "-"+infinity {
			return json.Number(number)
		}
		return infinity
	case []any:
		for i := range value {
			value[i] = plainNumbers(value[i])
		}
	case map[string]any:
		for name := range value {
			value[name] = plainNumbers(value[name])
		}
	}
	return value
}

const infinity = "Infinity"

// scriptNumber returns a number as JavaScript writes it: 1.20e2 is 120.
func scriptNumber(n json.Number) string {
	f, _ := strconv.ParseFloat(string(n), 64) // infinite if it is out of range
	switch size := math.Abs(f); {
	case math.IsInf(f, 1):
		return infinity
	case math.IsInf(f, -1):
		return "-" + infinity
	case f == 0:
		return "0"
	case size < 1e-6 || size >= 1e21:
		text := strconv.FormatFloat(f, 'e', -1, 64)
		return strings.Replace(text, "e-0", "e-", 1)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
