package rules

import (
	"net/http"
	"net/netip"
	"net/url"

	"github.com/weir-go/weir/cmd/internal/config"
)

// Typed returns a request that has the key which a person wrote, one text for each part of the rule's key: the key of
// that request, by [Rule.Limit], is the key that was meant. Where a part may be an address or something else, what
// reads as an address is one.
func (r *Rule) Typed(texts []string) *http.Request {
	request := &http.Request{Method: http.MethodGet, URL: &url.URL{}, Header: http.Header{}}
	for i, sources := range r.Key {
		text := ""
		if i < len(texts) {
			text = texts[i]
		}
		write(request, meant(sources, text), text)
	}
	return request
}

// meant returns the source of a part that a text is for.
func meant(sources config.KeyPart, text string) config.Source {
	_, err := netip.ParseAddr(text)
	if last := sources[len(sources)-1]; last.Kind == config.SourceIP && err == nil {
		return last
	}
	return sources[0]
}

// write puts the text where the source is read from.
func write(r *http.Request, s config.Source, text string) {
	switch s.Kind {
	case config.SourceIP:
		r.RemoteAddr = text
	case config.SourceHeader:
		r.Header.Set(s.Name, text)
	case config.SourceCookie:
		r.AddCookie(&http.Cookie{Name: s.Name, Value: text})
	case config.SourceQuery:
		values := r.URL.Query()
		values.Set(s.Name, text)
		r.URL.RawQuery = values.Encode()
	case config.SourcePath:
		r.URL.Path = text
	case config.SourceMethod:
		r.Method = text
	case config.SourceHost:
		r.Host = text
	case config.SourceGlobal, config.SourceNone: // read from nowhere
	}
}
