// Package hostile makes requests that are as much work as possible to read, and plain ones of the same size to compare
// them with.
package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
)

// pieces are what makes the parts of a request costly to read.
var pieces = map[string][]string{
	"path": {"/", ";", "/;", "/.", "/..", "//", "%2f", "%5c", `\`, "%252f", "%2e", "%3b", "/a", "/login", ".", ".json", "%3f", "%00",
		"/users", "%25", "%2541", "k", "%e2%84%aa", "/a.b.c", " ", "::$DATA", "/%E4%BD%A0"},
	"query": {"&", "=", ";", "k=", "q1=", "%6b=", "K=V&", "k[]=", "&&", "%u006b", "+", "%20", "%2", "a=b;", "k=V%00", "_method=DELETE&",
		"k.", "[", "]", "%C3%A9", "k=V+&"},
	"cookie": {";", "=", ",", " ", "a=", "sid=", "a ", "a=b;", ", sid=V", "\t", `"`, `\`, `\126`, "%41", "j:[", `j:{"a":`, "\xa0", "\u3000",
		"SID=V;", "s%69d=V;", "c1=", "=;", "= "},
	"field": {" ", "\t", "\xa0", "\u3000", "a", "a,", "\x85"},
}

// Request returns a request of about so many bytes, whose parts are mixed or repeated from few pieces.
func Request(random *rand.Rand, size int) *http.Request {
	parts := []string{"path", "query", "cookie", "field"}
	shares := map[string]int{}
	if random.IntN(2) == 0 { // all in one part
		shares[parts[random.IntN(len(parts))]] = size
	} else {
		for _, part := range parts {
			shares[part] = size / len(parts)
		}
	}
	if random.IntN(3) == 0 { // a path that is just not too long
		shares["path"] = random.IntN(8000)
	}
	text := func(part string) string {
		all := append(pieces[part], strings.Repeat("x", 1+random.IntN(60)))
		few := make([]string, 1+random.IntN(3))
		for i := range few {
			few[i] = all[random.IntN(len(all))]
		}
		var b strings.Builder
		for b.Len() < 1<<10 {
			b.WriteString(few[random.IntN(len(few))])
		}
		return strings.Repeat(b.String(), 1+shares[part]>>10)[:shares[part]]
	}
	return request("/"+text("path"), text("query"), text("cookie"), text("field"))
}

// Plain returns a request of about so many bytes, as programs send them: a path of 1 KiB, and parameters and cookies of
// some hundred bytes.
func Plain(size int) *http.Request {
	fields := func(name, separator string, size int) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, "%s%d=%0100d%s", name, i, i, separator)
		}
		return b.String()[:size]
	}
	rest := (size - 1<<10) / 2
	return request("/users/"+strings.Repeat("abcdefg/", 128), fields("q", "&", rest), fields("c", "; ", rest), "key")
}

// request returns the request that net/http makes of a target and fields, with an escape for what it does not accept.
func request(path, query, cookie, field string) *http.Request {
	u, err := url.ParseRequestURI(path)
	if err != nil {
		u = &url.URL{Path: strings.ReplaceAll(path, "%", "%25")}
		if again, err := url.ParseRequestURI(u.Path); err == nil {
			u = again
		}
	}
	u.RawQuery = query
	return (&http.Request{Method: http.MethodPost, URL: u, Host: "a.example", RemoteAddr: "192.0.2.1:80",
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RequestURI: u.RequestURI(),
		Header: http.Header{"Cookie": {cookie}, "X-Api-Key": {field}}}).WithContext(context.Background())
}

// Size returns how many bytes of a request a client can choose.
func Size(r *http.Request) int {
	return len(r.URL.EscapedPath()) + len(r.URL.RawQuery) + len(r.Header.Get("Cookie")) + len(r.Header.Get("X-Api-Key"))
}
