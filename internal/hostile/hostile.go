// Package hostile makes requests whose reading takes as much work as possible. For comparison, it also makes ordinary
// requests of the same size.
package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// pieces has, for each part of a request, texts that make the part expensive to read. A part whose name starts with a
// capital letter is a header field.
var pieces = map[string][]string{
	"path": {"/", ";", "/;", "/.", "/..", "//", "%2f", "%5c", `\`, "%252f", "%2e", "%3b", "/a", "/login", ".", ".json", "%3f", "%00",
		"/users", "%25", "%2541", "k", "%e2%84%aa", "/a.b.c", " ", "::$DATA", "/%E4%BD%A0", "/users/p", "/12", "/run.php", "aaaa"},
	"query": {"&", "=", ";", "k=", "q1=", "%6b=", "K=V&", "k[]=", "&&", "%u006b", "+", "%20", "%2", "a=b;", "k=V%00", "_method=DELETE&",
		"k.", "[", "]", "%C3%A9", "k=V+&", "_method=POST&", "k=V&", "k[a]=V&"},
	"host": {"A", "a", ".a", "A.", "-", "a.example", ".EXAMPLE"},
	"Cookie": {";", "=", ",", " ", "a=", "sid=", "a ", "a=b;", ", sid=V", "\t", `"`, `\`, `\126`, "%41", "j:[", `j:{"a":`, "\xa0",
		"\u3000", "SID=V;", "s%69d=V;", "c1=", "=;", "= ", "sid=V;", `sid=j:{"a":1};`},
	"X-Api-Key":              {" ", "\t", "\xa0", "\u3000", "a", "a,", "\x85", "\u2003", "\ufeff", "\xc3"},
	"Authorization":          {" ", "\t", "bearer ", "Bearer ", "BASIC", "\xa0", "\u3000", "a", "\x85"},
	"X-Kind":                 {" ", "\t", "\xa0", "\u3000", "v1", "V", "\x85", "\u2003", "v"},
	"X-Tier":                 {" ", "\u3000", "free", "\x85", "x"},
	"X-Cost":                 {" ", "\u3000", "1", "0", "\x85", "99999999999999999999"},
	"X-Http-Method-Override": {" ", "\t", "\xa0", "\u3000", "POST", "post", "DELETE", "\x85", "L\u0131nk"},
	"X-Forwarded-For":        {"10.0.0.1,", "10.1.2.3, ", ",", " ", "2001:db8::1,", "[::ffff:10.0.0.1]:80,", "10.0.0.1:65535,", "a,", "\xa0"},
}

// parts are the keys of pieces in a fixed order.
var parts = func() (names []string) {
	for part := range pieces {
		names = append(names, part)
	}
	slices.Sort(names)
	return names
}()

// Request returns a request of about size bytes. Each part of the request mixes its pieces, or repeats a few of them. A
// header field has one line or many lines.
func Request(random *rand.Rand, size int) *http.Request {
	shares := map[string]int{}
	switch random.IntN(4) {
	case 0, 1: // all bytes are in one part
		shares[parts[random.IntN(len(parts))]] = size
	case 2: // the bytes are in several parts
		count := 1 + random.IntN(4)
		for range count {
			shares[parts[random.IntN(len(parts))]] += size / count
		}
	case 3:
		for _, part := range parts {
			shares[part] = size / len(parts)
		}
	}
	if random.IntN(3) == 0 { // a path of fewer than 8,000 bytes
		shares["path"] = random.IntN(8000)
	}
	if random.IntN(3) == 0 {
		shares["host"] = random.IntN(250)
	}
	textOf := func(part string) string { return text(random, pieces[part], shares[part]) }
	r := request("/"+textOf("path"), textOf("query"))
	if r.Host = textOf("host"); r.Host == "" {
		r.Host = "a.example"
	}
	for _, part := range parts {
		if part == http.CanonicalHeaderKey(part) && shares[part] > 0 {
			r.Header[part] = lines(random, part, textOf(part))
		}
	}
	return r
}

// text returns size bytes, made of a few of the pieces.
func text(random *rand.Rand, pieces []string, size int) string {
	choices := append(slices.Clone(pieces), strings.Repeat("x", 1+random.IntN(60)))
	chosen := make([]string, 1+random.IntN(3))
	for i := range chosen {
		chosen[i] = choices[random.IntN(len(choices))]
	}
	var b strings.Builder
	for b.Len() < 1<<10 {
		b.WriteString(chosen[random.IntN(len(chosen))])
	}
	return strings.Repeat(b.String(), 1+size>>10)[:size]
}

// lines returns the lines of a field. A line costs a client the bytes of the text and the name, and four more bytes.
// Half of the fields have one line. The other fields have many lines, either equal or different.
func lines(random *rand.Rand, name, text string) []string {
	if random.IntN(2) == 0 {
		return []string{text}
	}
	size, equal := 1+random.IntN(40), random.IntN(2) == 0
	first := text[:min(size, len(text))]
	var lines []string
	for len(text) > size {
		line := text[:size]
		if equal {
			line = first
		}
		lines = append(lines, line)
		text = text[min(len(text), size+len(name)+len(": \r\n")):]
	}
	return append(lines, first)
}

// Plain returns an ordinary request of about size bytes: a path of 1 KiB, and parameters and cookies of some hundred
// bytes each.
func Plain(size int) *http.Request {
	fields := func(name, separator string, size int) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, "%s%d=%0100d%s", name, i, i, separator)
		}
		return b.String()[:size]
	}
	share := (size - 1<<10) / 2
	r := request("/users/"+strings.Repeat("abcdefg/", 128), fields("q", "&", share))
	r.Header = http.Header{"Cookie": {fields("c", "; ", share)}, "X-Api-Key": {"key"}, "Authorization": {"Bearer token"}, "X-Kind": {"v1"},
		"X-Tier": {"free"}, "X-Cost": {"1"}, "X-Forwarded-For": {"198.51.100.1"}}
	return r
}

// request returns the request that net/http makes from a path and a query. In a path that net/http does not accept,
// percent signs are escaped.
func request(path, query string) *http.Request {
	u, err := url.ParseRequestURI(path)
	if err != nil {
		u = &url.URL{Path: strings.ReplaceAll(path, "%", "%25")}
		if parsed, err := url.ParseRequestURI(u.Path); err == nil {
			u = parsed
		}
	}
	u.RawQuery = query
	return (&http.Request{Method: http.MethodPost, URL: u, Host: "a.example", RemoteAddr: "192.0.2.1:80",
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RequestURI: u.RequestURI(), Header: http.Header{},
	}).WithContext(context.Background())
}

// Size returns the number of bytes of a request that a client can choose.
func Size(r *http.Request) int {
	size := len(r.URL.EscapedPath()) + len(r.URL.RawQuery) + len(r.Host)
	for name, lines := range r.Header {
		for _, line := range lines {
			size += len(name) + len(line) + len(": \r\n")
		}
	}
	return size
}

// String describes a request: the length and the beginning of each part.
func String(r *http.Request) string {
	var b strings.Builder
	part := func(name, text string, lines int) {
		if text != "" {
			fmt.Fprintf(&b, "%s %.40q (%d bytes, %d lines) ", name, text, len(text), lines)
		}
	}
	part("path", r.URL.EscapedPath(), 1)
	part("query", r.URL.RawQuery, 1)
	part("host", r.Host, 1)
	for _, name := range parts {
		part(name, strings.Join(r.Header[name], "|"), len(r.Header[name]))
	}
	return b.String()
}
