package replay

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"

	"github.com/weir-go/weir/cmd/weir/internal/accesslog"
)

// loggedHeaders are the header fields that the Combined Log Format has.
var loggedHeaders = []string{"Referer", "User-Agent"}

// requestOf returns what a log line tells about its request; false if what was logged is no
// HTTP request, which a server answers before any limit.
//
// The host is that of the line, where a client sent it with the path, or else the given one.
func requestOf(e *accesslog.Entry, host string) (*http.Request, bool) {
	method, rest, ok := bytes.Cut(e.Request, []byte(" "))
	target, _, isHTTP := bytes.Cut(rest, []byte(" HTTP/"))
	if !ok || !isHTTP || len(method) == 0 || len(target) == 0 {
		return nil, false
	}
	r := &http.Request{Method: string(method), Host: host, Header: http.Header{}, RemoteAddr: string(e.Host)}
	var err error
	switch text := unescape(target); {
	case r.Method == http.MethodConnect, text == "*":
		r.URL = &url.URL{Path: text}
	default:
		if r.URL, err = url.ParseRequestURI(text); err != nil {
			return nil, false
		}
	}
	if r.URL.Host != "" {
		r.Host = r.URL.Host
	}
	for i, value := range [][]byte{e.Referer, e.Agent} {
		if len(value) > 0 && string(value) != "-" {
			r.Header.Set(loggedHeaders[i], unescape(value))
		}
	}
	return r, true
}

// unescape undoes what servers write for quotes and backslashes; other escapes stay.
func unescape(text []byte) string {
	s := string(text)
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(s)
}
