package replay

import (
	"context"
	"net/http"
	"net/url"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/httplimit/reading"
)

// maxTargets is how many targets are remembered with their parsed URLs. Usually, a few targets make up most requests of
// a log.
const maxTargets = 8192

// requests makes HTTP requests from log lines. It always fills the same request, which has only the parts that the
// rules read.
type requests struct {
	host    string // host of requests whose host is not in the log
	headers map[string]bool
	urls    map[string]*url.URL // by target; nil for a target that is not a URL
	parsed  *reading.Parsed     // the parsed parts of the request
	request *http.Request
}

func newRequests(host string) *requests {
	parsed := new(reading.Parsed)
	request := &http.Request{Header: http.Header{}}
	return &requests{host: host, headers: map[string]bool{}, urls: map[string]*url.URL{}, parsed: parsed,
		request: request.WithContext(context.WithValue(context.Background(), reading.ParsedKey{}, parsed))}
}

// require ensures that the requests have the header fields which the sources name.
func (rs *requests) require(sources ...rulefile.Source) {
	for _, s := range sources {
		switch s.Kind {
		case rulefile.SourceHeader:
			rs.headers[http.CanonicalHeaderKey(s.Name)] = true
		case rulefile.SourceCookie:
			rs.headers["Cookie"] = true
		case rulefile.SourceIP, rulefile.SourceQuery, rulefile.SourcePath, rulefile.SourceMethod, rulefile.SourceHost,
			rulefile.SourceGlobal, rulefile.SourceNone:
		}
	}
}

// fromEntry returns the request of a log line. The request is valid until the next call. Its host is the host of
// the line, or rs.host if the line has none. If the request was not HTTP, the second result is false, because a server
// answers such a request before any limit.
func (rs *requests) fromEntry(e *accesslog.Entry) (*http.Request, bool) {
	if !e.IsHTTP() {
		return nil, false
	}
	*rs.parsed = reading.Parsed{}
	r := rs.request
	r.URL = rs.url(e)
	if r.URL == nil {
		return nil, false
	}
	if r.Method != string(e.Method) {
		r.Method = string(e.Method)
	}
	if r.RemoteAddr != string(e.Client) {
		r.RemoteAddr = string(e.Client)
	}
	switch {
	case r.URL.Host != "":
		r.Host = r.URL.Host
	case len(e.Host) == 0:
		r.Host = rs.host
	case r.Host != string(e.Host):
		r.Host = string(e.Host)
	}
	clear(r.Header)
	for _, h := range e.Headers {
		if rs.headers[h.Name] {
			r.Header[h.Name] = append(r.Header[h.Name], string(h.Value))
		}
	}
	return r, true
}

// url returns the URL of a request, or nil if the target is not a URL.
func (rs *requests) url(e *accesslog.Entry) *url.URL {
	if string(e.Method) == http.MethodConnect || string(e.Target) == "*" {
		return &url.URL{Path: string(e.Target)}
	}
	if u, found := rs.urls[string(e.Target)]; found {
		return u
	}
	if len(rs.urls) >= maxTargets {
		clear(rs.urls)
	}
	target := string(e.Target)
	u, err := url.ParseRequestURI(target)
	if err != nil {
		u = nil
	}
	rs.urls[target] = u
	return u
}
