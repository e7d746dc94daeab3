package spelling

import (
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/internal/testalloc"
)

func TestSameName(t *testing.T) {
	for _, same := range [][2]string{{"sid", "sid"}, {"SID", "sid"}, {"a.b", "a_b"}, {"a b", "a_b"}, {"a[b", "A_b"},
		{"s%69d", "sid"}, {"a+b", "a_b"}, {" sid", "sid"}, {"%20+sid", "sid"}, {"sid%00x", "sid"}, {"sid\x00", "sid"}} {
		assert.True(t, SameName(same[0], same[1]), same)
	}
	for _, other := range [][2]string{{"sid", "sid2"}, {"", "a"}, {"s-d", "s_d"}, {"s%zzd", "sid"}} {
		assert.False(t, SameName(other[0], other[1]), other)
	}
}

func TestCookieValue(t *testing.T) {
	for raw, want := range map[string]string{
		"V": "V", `"V"`: "V", `"\126"`: "V", "%56": "V", `"%56"`: "V", `"Vx`: "V", `"V"x`: "V",
		`"\V"`: "V", `"\04556"`: "V", `"a\"b"`: `a"b`, `"a\\b"`: `a\b`, "": "", `"`: `"`, `""`: "", `"\`: "",
		`"a;b"`: "a;b", "a+b": "a b", "a%2Bb": "a b", "a%20b": "a b", "%5": "%5", "%zz%56": "%zzV", "%56%": "V%",
		`"\400"`: "400",
		`"\12"`:  "12", `V"`: `V"`, `"a, b"`: "a, b", `\126`: `\126`,
	} {
		got, ok := CookieValue(raw)
		assert.True(t, ok, raw)
		assert.Equal(t, want, got, raw)
	}
	for _, raw := range []string{"V,x", "V x=1", "V\tx", ",", "V,", ",V", `V "x"`, "V%00x", "%00", `j:"\u0000"`, `j:["a", b]`} {
		_, ok := CookieValue(raw)
		assert.False(t, ok, raw)
	}
	assert.Zero(t, testalloc.PerCall(func() { CookieValue("0123456789abcdef-_.~=/") }))
}

// Express's cookie-parser reads a cookie that begins with j: as JSON. If JavaScript treats the value of the JSON as
// false, cookie-parser uses the text of the cookie unchanged.
func TestCookieValueOfJSON(t *testing.T) {
	for want, raws := range map[string][]string{
		"V":                    {`j:"V"`, `j: "V"`, "j:\t\"V\" ", `j:"\u0056"`, "j%3A%22V%22", "j:%0d%0a%22%5cu0056%22", `"j:\"V\""`, `j:["V"]`, `j:[["V"]]`},
		"12":                   {"j:12", "j: 12", "j:12.0", "j:1.2e1", "j:120e-1", `j:"12"`},
		"1e-7":                 {"j:0.0000001", "j:1e-7", "j:10e-8"},
		"1e 21":                {"j:1e21", "j:1000000000000000000000"},
		"-5":                   {"j:-5", "j:-5.0"},
		"true":                 {"j:true", "j: true"},
		"a,,null":              {`j:["a",null,"null"]`, `j: [ "a" , null, "null" ]`},
		`{"a":1,"b":[10,"x"]}`: {`j:{"a":1,"b":[10,"x"]}`, `j:{ "b" : [1e1, "\u0078"], "a": 1.0 }`, `j:{"a":2,"a":1,"b":[10,"x"]}`},
		"\xe9":                 {"\xe9", "%C3%A9", "\u00e9", `j:"\u00e9"`, "j:\"\xe9\"", `j:"%C3%A9"`, "%c3%83%c2%a9"},
		"\u4e2d":               {"\u4e2d", "%e4%b8%ad", `j:"\u4e2d"`, "%c3%a4%c2%b8\xad"},
		"Infinity":             {"j:1e999", "j:2e999", "Infinity"},
		"-Infinity":            {"j:-1e999"},
		`{"a":"Infinity"}`:     {`j:{"a":1e999}`},
		"j:0":                  {"j:0"},
		"j:0.0":                {"j:0.0"},
		`j:""`:                 {`j:""`},
		"j:false":              {"j:false"},
		"j:null":               {"j:null"},
		"j:":                   {"j:"},
		"j:V":                  {"j:V"},
		`j:"V"x`:               {`j:"V"x`},
		"J:1":                  {"J:1"},
	} {
		for _, raw := range raws {
			got, ok := CookieValue(raw)
			assert.True(t, ok, raw)
			assert.Equal(t, want, got, raw)
		}
	}
	long := `j:"` + strings.Repeat("a", maxJSON) + `"`
	got, ok := CookieValue(long)
	assert.True(t, ok)
	assert.Equal(t, long, got, "no browser keeps it")
}

// There are several ways to send a value. If a server reads two spellings as the same value, Value returns the same
// text for both of them.
func TestValue(t *testing.T) {
	for want, spellings := range map[string][]string{
		"V":      {"V", "V ", " V", "V+", "+V\t", "V\x01", "\x1fV\x7f", "V\u00a0", "V\xa0", "\x85V", "V\u3000", "\ufeffV"},
		"a b":    {"a b", "a+b", "a\tb", "a\x1bb"},
		"\xe9x":  {"\u00e9x", "\xe9x", "\u00c3\u00a9x", "\u00c3\xa9x"},
		"":       {"", " ", "+"},
		"\u0416": {"\u0416", "\u00d0\u0096"},
	} {
		for _, s := range spellings {
			got, ok := Value(s)
			assert.True(t, ok, "%q", s)
			assert.Equal(t, want, got, "%q", s)
		}
	}
	_, ok := Value("a\x00")
	assert.False(t, ok)
	assert.Zero(t, testalloc.PerCall(func() { Value("0123456789abcdef-_.~=/") }))
}

// Value returns the same text whether the characters are sent as bytes of Latin-1 or in UTF-8. It also makes no
// difference whether they are encoded once more. If Value gets a text that it has returned, it returns this text
// unchanged.
func FuzzValue(f *testing.F) {
	f.Add("\xe9\xc3\xa9", uint64(5))
	f.Add("\xc2\x85a\xa0", uint64(2))
	f.Fuzz(func(t *testing.T, s string, choice uint64) {
		want, ok := Value(s)
		var mixed []byte
		for i := range len(s) {
			if choice>>(i%64)&1 == 0 {
				mixed = append(mixed, s[i])
			} else {
				mixed = utf8.AppendRune(mixed, rune(s[i]))
			}
		}
		got, mixedOK := Value(string(mixed))
		assert.Equal(t, ok, mixedOK)
		assert.Equal(t, want, got)
		again, _ := Value(want)
		assert.Equal(t, want, again)
		assert.LessOrEqual(t, len(got), len(s))
	})
}

func TestCredentials(t *testing.T) {
	for _, same := range []string{"Bearer V", "bearer V", "BEARER   V", "bEARER\tV", "Bearer \t V"} {
		assert.Equal(t, "Bearer V", Credentials(same), same)
	}
	for _, other := range []string{"", "V", "Bearer v", "Basic V", "Bearer V W", "Beare\u0301r V"} {
		assert.NotEqual(t, "Bearer V", Credentials(other), other)
	}
	assert.Equal(t, "Bearer V  W", Credentials("bearer  V  W"), "only the scheme and what follows it at once")
	assert.Zero(t, testalloc.PerCall(func() { Credentials("Bearer 0123456789abcdef") }))
}

// A text with valid escapes is read as net/url reads it.
func FuzzUnescapeQuery(f *testing.F) {
	for _, s := range []string{"", "a+b", "%41", "%4", "%", "%%41", "\xff%zz"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := UnescapeQuery(s)
		if want, err := url.QueryUnescape(s); err == nil {
			assert.Equal(t, want, got)
		}
		assert.Equal(t, got != s, HasEscapes(s) || strings.Contains(s, "+"))
		assert.LessOrEqual(t, len(got), len(s))
		value, _ := CookieValue(s)
		assert.LessOrEqual(t, len(value), len(s))
		assert.True(t, SameName(s, got) || strings.ContainsAny(got, "%+\x00") || strings.HasPrefix(got, " "))
	})
}

func TestUnescapeUnits(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "a": "a", "%41": "%41", "%u0041b": "Ab", "x%u00e9": "x\u00e9", "%U0041": "%U0041", "%u004": "%u004", "%u": "%u",
		"%u+041": "%u+041", "%ud83d": "\ufffd", "%u%u0041": "%uA", "%u0025u0041": "%u0041",
	} {
		assert.Equal(t, want, UnescapeUnits(s), s)
	}
}

// The blanks are the white space of Unicode, and the byte-order mark.
func TestBlanks(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		blank, at, before := unicode.IsSpace(r) || r == '\ufeff', blankAt(string(r)), blankBefore(string(r))
		assert.Equal(t, blank, at > 0, r)
		assert.Equal(t, blank, before > 0 && TrimBlanks(string(r)) == "", r)
		if blank {
			assert.Equal(t, utf8.RuneLen(r), at, r)
			assert.Equal(t, at, before, r)
		}
	}
	for s, want := range map[string]string{"\xa0\u3000\x85V\xa0 \u2003\x85": "V", "\xa0": "", "": "", "V W": "V W", "\xc3\xa0": "\xc3",
		"\u4e2d\u3000": "\u4e2d", "\xe3\x80": "\xe3\x80", "\x00V": "\x00V"} {
		assert.Equal(t, want, TrimBlanks(s), "%q", s)
	}
}

func TestHost(t *testing.T) {
	for host, want := range map[string]string{
		"": "", "A.example.": "a.example", "a:80": "a", "[::1]:80": "::1", "[::1]": "::1", "::1": "::1", ":80": "",
	} {
		assert.Equal(t, want, Host(host), host)
	}
}
