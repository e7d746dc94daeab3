package spelling

import (
	"net/url"
	"strings"
	"testing"

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
		`"a;b"`: "a;b", "a+b": "a b", "a%2Bb": "a b", "a%20b": "a b", "%5": "%5", "%zz%56": "%zzV", "%56%": "V%", "V%00x": "V",
		`"\400"`: "400",
		`"\12"`:  "12", `V"`: `V"`, `"a, b"`: "a, b", `\126`: `\126`,
	} {
		got, ok := CookieValue(raw)
		assert.True(t, ok, raw)
		assert.Equal(t, want, got, raw)
	}
	for _, raw := range []string{"V,x", "V x=1", "V\tx", ",", "V,", ",V", `V "x"`} {
		_, ok := CookieValue(raw)
		assert.False(t, ok, raw)
	}
	assert.Zero(t, testalloc.PerCall(func() { CookieValue("0123456789abcdef-_.~=/") }))
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

// A text with good escapes is read as net/url reads it.
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

func TestHost(t *testing.T) {
	for host, want := range map[string]string{
		"": "", "A.example.": "a.example", "a:80": "a", "[::1]:80": "::1", "[::1]": "::1", "::1": "::1", ":80": "",
	} {
		assert.Equal(t, want, Host(host), host)
	}
}
