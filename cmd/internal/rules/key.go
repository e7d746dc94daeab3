package rules

import (
	"fmt"
	"net/http"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/httplimit/reading"
	"github.com/weir-go/weir/internal/spelling"
)

// partKey returns the KeyFunc of one part of a rule's key. This function uses the first source that a request has.
func partKey(sources rulefile.KeyPart, client httplimit.KeyFunc, m *reading.Match) (key httplimit.KeyFunc, err error) {
	// Each source is the fallback of the source before it.
	for i := len(sources) - 1; i >= 0 && err == nil; i-- {
		key, err = sourceKey(sources[i], client, m, key)
	}
	return key, err
}

func sourceKey(s rulefile.Source, client httplimit.KeyFunc, m *reading.Match,
	fallback httplimit.KeyFunc) (httplimit.KeyFunc, error) {
	switch s.Kind {
	case rulefile.SourceHeader:
		return httplimit.Header(s.Name, fallback)
	case rulefile.SourceCookie:
		return httplimit.Cookie(s.Name, fallback)
	case rulefile.SourceQuery:
		return query(s.Name, fallback), nil
	case rulefile.SourceIP:
		return client, nil
	case rulefile.SourcePath:
		return func(h httplimit.Hasher, r *http.Request) (engine.Key, bool) {
			return h.Key(m.KeyPath(r)), true
		}, nil
	case rulefile.SourceMethod:
		return httplimit.Method, nil
	case rulefile.SourceHost:
		return func(h httplimit.Hasher, r *http.Request) (engine.Key, bool) {
			return h.Key(spelling.Host(r.Host)), true
		}, nil
	case rulefile.SourceGlobal:
		return httplimit.Everyone, nil
	case rulefile.SourceNone:
		return nil, nil // the rule does not count such a request
	}
	return nil, fmt.Errorf("a key of %s: this source does not exist", s)
}

// query returns the KeyFunc of a query parameter. If a request has several values of the parameter, its key does not
// depend on the values: all such requests share one key.
func query(name string, fallback httplimit.KeyFunc) httplimit.KeyFunc {
	return func(h httplimit.Hasher, r *http.Request) (engine.Key, bool) {
		switch value, ok := reading.QueryKey(r, name); {
		case !ok:
			return h.KeyUint64(0), true // no text has this key
		case value != "":
			return h.Key(value), true
		}
		return fallback.Or(h, r)
	}
}

func ClientIP(f *rulefile.File) (*httplimit.ClientIP, error) {
	options := prefixes(f)
	header := ""
	switch f.ClientIP.From {
	case rulefile.FromSocket:
		return httplimit.NewClientIP(options...)
	case rulefile.FromXForwardedFor:
		header = "X-Forwarded-For"
	case rulefile.FromForwarded:
		header = "Forwarded"
	case rulefile.FromHeader:
		header = f.ClientIP.Header
	}
	for _, p := range f.TrustedProxies {
		options = append(options, httplimit.TrustProxies(p.String()))
	}
	return httplimit.NewClientIP(append(options, httplimit.IPHeader(header))...)
}

// trusted returns a function that reports whether a trusted proxy sent a request.
func trusted(f *rulefile.File, client Client) (func(*http.Request) bool, error) {
	if _, ok := client.(Trusted); ok || len(f.TrustedProxies) == 0 {
		return func(*http.Request) bool { return ok }, nil
	}
	var options []httplimit.IPOption
	for _, p := range f.TrustedProxies {
		options = append(options, httplimit.TrustProxies(p.String()))
	}
	proxies, err := httplimit.NewClientIP(options...)
	if err != nil {
		return nil, err
	}
	return proxies.IsProxy, nil
}

// PeerIP returns a finder that uses the address of the connection. It is for requests whose client is known, such as
// those of a log.
func PeerIP(f *rulefile.File) (*httplimit.ClientIP, error) {
	return httplimit.NewClientIP(prefixes(f)...)
}

func prefixes(f *rulefile.File) []httplimit.IPOption {
	return []httplimit.IPOption{
		httplimit.IPv4Prefix(f.ClientIP.IPv4Prefix), httplimit.IPv6Prefix(f.ClientIP.IPv6Prefix),
	}
}
