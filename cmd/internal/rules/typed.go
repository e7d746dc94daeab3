package rules

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// Typed returns a request with the key that a person typed. It needs one text for each part of the key. [Rule.Limit]
// finds the same key for this request. If a part can be an address or something else, a text that looks like an address
// counts as an address.
func (r *Rule) Typed(texts []string) *http.Request {
	request := emptyRequest()
	for i, sources := range r.Key {
		text := ""
		if i < len(texts) {
			text = texts[i]
		}
		writeSource(request, sourceFor(sources, text), text)
	}
	return request
}

func emptyRequest() *http.Request {
	return &http.Request{Method: http.MethodGet, URL: &url.URL{}, Header: http.Header{}}
}

// sourceFor returns the source that a text is meant for.
func sourceFor(sources rulefile.KeyPart, text string) rulefile.Source {
	_, err := netip.ParseAddr(text)
	if last := sources[len(sources)-1]; last.Kind == rulefile.SourceIP && err == nil {
		return last
	}
	return sources[0]
}

// canCarry reports whether a request can have a text in a source. It is called after the text was written into the
// request.
func canCarry(r *http.Request, s rulefile.Source, text string) bool {
	switch s.Kind {
	case rulefile.SourceHeader:
		return httpguts.ValidHeaderFieldValue(text) && strings.Trim(text, " \t") == text
	case rulefile.SourceCookie:
		cookie, err := r.Cookie(s.Name)
		return err == nil && cookie.Value == text
	}
	return true
}

// writeSource puts text where the source is read.
func writeSource(r *http.Request, s rulefile.Source, text string) {
	switch s.Kind {
	case rulefile.SourceIP:
		r.RemoteAddr = text
	case rulefile.SourceHeader:
		r.Header.Set(s.Name, text)
	case rulefile.SourceCookie:
		r.AddCookie(&http.Cookie{Name: s.Name, Value: text})
	case rulefile.SourceQuery:
		values := r.URL.Query()
		values.Set(s.Name, text)
		r.URL.RawQuery = values.Encode()
	case rulefile.SourcePath:
		r.URL.Path = text
	case rulefile.SourceMethod:
		r.Method = text
	case rulefile.SourceHost:
		r.Host = text
	case rulefile.SourceGlobal, rulefile.SourceNone: // not read from the request
	}
}
