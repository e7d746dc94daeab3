package serve

import (
	"net"
	"net/http"
	"net/netip"

	"github.com/weir-go/weir/cmd/weir/internal/config"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// clientIP returns what finds the address of a client.
func clientIP(f *config.File) (*httplimit.ClientIP, error) {
	options := []httplimit.IPOption{
		httplimit.IPv4Prefix(f.ClientIP.IPv4Prefix), httplimit.IPv6Prefix(f.ClientIP.IPv6Prefix),
	}
	header := ""
	switch f.ClientIP.From {
	case config.FromSocket:
		return httplimit.NewClientIP(options...)
	case config.FromXForwardedFor:
		header = "X-Forwarded-For"
	case config.FromForwarded:
		header = "Forwarded"
	case config.FromHeader:
		header = f.ClientIP.Header
	}
	for _, p := range f.TrustedProxies {
		options = append(options, httplimit.TrustProxies(p.String()))
	}
	return httplimit.NewClientIP(append(options, httplimit.IPHeader(header))...)
}

// keyFunc returns what makes the key of a rule.
func keyFunc(key config.Key, ip *httplimit.ClientIP) (httplimit.KeyFunc, error) {
	parts := make([]httplimit.KeyFunc, len(key))
	for i, sources := range key {
		// From the last source to the first: each is what the one before falls back to.
		for j := len(sources) - 1; j >= 0; j-- {
			var err error
			if parts[i], err = sourceKey(sources[j], ip, parts[i]); err != nil {
				return nil, err
			}
		}
	}
	return httplimit.Join(parts...), nil
}

func sourceKey(s config.Source, ip *httplimit.ClientIP, fallback httplimit.KeyFunc) (httplimit.KeyFunc, error) {
	switch s.Kind {
	case config.SourceHeader:
		return httplimit.Header(s.Name, fallback)
	case config.SourceCookie:
		return httplimit.Cookie(s.Name, fallback)
	case config.SourceIP:
		return ip.Key, nil
	case config.SourcePath:
		return func(h httplimit.Hasher, r *http.Request) (engine.Key, bool) {
			return h.Key(config.CleanPath(r.URL.Path)), true
		}, nil
	case config.SourceMethod:
		return httplimit.Method, nil
	case config.SourceHost:
		return func(h httplimit.Hasher, r *http.Request) (engine.Key, bool) {
			return h.Key(config.BareHost(r.Host)), true
		}, nil
	case config.SourceGlobal:
		return httplimit.Everyone, nil
	}
	return nil, nil // config.SourceNone: the rule does not count the request
}

// typedKey returns the key of what a person wrote, one text for each part of a rule's key. Where a part
// may be an address or something else, what reads as an address is one.
func typedKey(l *engine.Limiter, key config.Key, ip *httplimit.ClientIP, texts []string) engine.Key {
	k, _ := typed(key, ip, texts)(httplimit.HasherOf(l), nobody)
	return k
}

// typedText is what typedKey is for a limit that is kept in a store.
func typedText(key config.Key, ip *httplimit.ClientIP, texts []string) string {
	text, _ := typed(key, ip, texts).Text(nobody)
	return text
}

// nobody is a request in which no key is looked for: it was typed.
var nobody = &http.Request{Method: http.MethodGet}

func typed(key config.Key, ip *httplimit.ClientIP, texts []string) httplimit.KeyFunc {
	parts := make([]httplimit.KeyFunc, len(key))
	for i, sources := range key {
		text := ""
		if i < len(texts) {
			text = texts[i]
		}
		parts[i] = typedPart(sources, ip, text)
	}
	return httplimit.Join(parts...)
}

func typedPart(sources config.KeyPart, ip *httplimit.ClientIP, text string) httplimit.KeyFunc {
	_, err := netip.ParseAddr(text)
	address := err == nil || len(sources) == 1
	for _, s := range sources {
		switch {
		case s.Kind == config.SourceGlobal:
			return httplimit.Everyone
		case s.Kind == config.SourceMethod:
			return func(h httplimit.Hasher, _ *http.Request) (engine.Key, bool) {
				return httplimit.Method(h, &http.Request{Method: text})
			}
		case s.Kind == config.SourceIP && address:
			// As a peer: were its address a proxy's, there is no header to look at.
			return func(h httplimit.Hasher, _ *http.Request) (engine.Key, bool) {
				return ip.Key(h, &http.Request{RemoteAddr: net.JoinHostPort(text, "0")})
			}
		case s.Kind == config.SourcePath:
			text = config.CleanPath(text)
		case s.Kind == config.SourceHost:
			text = config.BareHost(text)
		}
	}
	return func(h httplimit.Hasher, _ *http.Request) (engine.Key, bool) { return h.Key(text), true }
}
