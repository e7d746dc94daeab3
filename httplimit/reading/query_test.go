package reading

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
)

// All spellings of a value have one key. If readings of the query give different values, the parameter has no key.
func TestQueryKey(t *testing.T) {
	for query, want := range map[string]string{
		"k=V": "V", "K=V": "V", "k=%56": "V", "k=V+": "V", "k=+V%20": "V", "k=V%09": "V", "k=V%01": "V", "k=V%C2%A0": "V",
		"k=V%a0": "V", "k=V%e3%80%80": "V", "k=V&k=V+": "V", "k[]=V": "V", "k=a+b": "a b", "k=a%2Bb": "a b",
		"": "", "k=": "", "k=+": "", "a=V": "", "k": "",
	} {
		got, ok := QueryKey(&http.Request{URL: &url.URL{RawQuery: query}}, "k")
		assert.True(t, ok, query)
		assert.Equal(t, want, got, query)
	}
	for _, query := range []string{"k=V&k=W", "k=V&k=", "k=V%00", "k=V;x", "k=%u0056", "k=V&K=v"} {
		_, ok := QueryKey(&http.Request{URL: &url.URL{RawQuery: query}}, "k")
		assert.False(t, ok, query)
	}
}

// Some servers read the method from a header field, or from the query of a POST. Rules for the method that they read
// must apply, too.
func TestOverriddenMethods(t *testing.T) {
	deletes := Match{Methods: []string{http.MethodDelete}}
	for _, name := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
		for _, value := range []string{"DELETE", "delete", " DELETE\u00a0"} {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Header.Set(name, value)
			assert.True(t, deletes.Meets(r, nil), name)
			posts := Match{Methods: []string{http.MethodPost}}
			assert.True(t, posts.Meets(r, nil), name)
			assert.False(t, posts.IsCertain(r, nil), "to some it is no POST")
			r.Header.Set(name, "PUT")
			assert.False(t, deletes.Meets(r, nil), name)
		}
	}
}

// A rule for a parameter's value applies to every spelling of it. An exception applies only to the plain spelling.
func TestSpellingsOfAWantedParameter(t *testing.T) {
	m := Match{Query: []Field{{Name: "t", Values: []string{"a+b"}}}}
	for query, certain := range map[string]bool{"t=a%2bb": true, "t=a+b": false, "t=a%2bb+": false, "t=a%2bb%c2%a0": false} {
		r := httptest.NewRequest(http.MethodGet, "/?"+query, nil)
		assert.True(t, m.Meets(r, nil), query)
		assert.Equal(t, certain, m.IsCertain(r, nil), query)
	}
}

// Only some servers remove Unicode blanks around a header's value. If a value has such blanks, a rule for the value
// applies, and an exception does not.
func TestBlanksAroundAWantedHeader(t *testing.T) {
	m := Match{Headers: []Field{HeaderField("X-Env", "prod")}}
	for value, certain := range map[string]bool{"prod": true, " prod\t": true, "prod\xa0": false, "prod\x85": false,
		"\u3000prod": false} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header["X-Env"] = []string{value}
		assert.True(t, m.Meets(r, nil), "%q", value)
		assert.Equal(t, certain, m.IsCertain(r, nil), "%q", value)
	}
}
