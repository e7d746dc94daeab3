package replay

import (
	"net/http"
	"net/url"

	"github.com/weir-go/weir/cmd/weir/internal/accesslog"
)

// requestOf returns what a log line tells about its request; false if what was logged is no
// HTTP request, which a server answers before any limit.
//
// The host is that of the line, where it has one, or else the given one.
func requestOf(e *accesslog.Entry, host string) (*http.Request, bool) {
	if !e.IsHTTP() {
		return nil, false
	}
	r := &http.Request{Method: string(e.Method), Host: host, Header: http.Header{}, RemoteAddr: string(e.Client)}
	if len(e.Host) > 0 {
		r.Host = string(e.Host)
	}
	var err error
	switch target := string(e.Target); {
	case r.Method == http.MethodConnect, target == "*":
		r.URL = &url.URL{Path: target}
	default:
		if r.URL, err = url.ParseRequestURI(target); err != nil {
			return nil, false
		}
	}
	if r.URL.Host != "" {
		r.Host = r.URL.Host
	}
	for _, h := range e.Headers {
		r.Header[h.Name] = append(r.Header[h.Name], string(h.Value))
	}
	return r, true
}
