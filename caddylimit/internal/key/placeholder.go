package key

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// placeholders returns the names of the placeholders in a text. A backslash makes a brace a normal character.
func placeholders(text string) (names []string, err error) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			length := strings.IndexByte(text[i:], '}')
			if length < 0 {
				return nil, fmt.Errorf("%q: the brace at byte %d is not closed: want {placeholder}, or \\{ for the character", text, i)
			}
			name := text[i+1 : i+length]
			if name == "" || strings.Contains(name, "{") {
				return nil, fmt.Errorf("%q: {%s} is not a placeholder: want one such as {http.request.remote.host}", text, name)
			}
			names = append(names, name)
			i += length
		}
	}
	return names, nil
}

// checkPlaceholder returns an error for a placeholder that no request can have, and a warning for a probable mistake.
func checkPlaceholder(name string) (warning string, err error) {
	switch {
	case name == "http.request.remote" || strings.HasSuffix(name, ".remote.port"):
		return "the port of a client differs for every connection: want {http.request.remote.host}", nil
	case strings.EqualFold(name, "http.request.header.Host"):
		return "", errors.New("requests do not have Host among their headers, so it would be empty: want {http.request.host}")
	case name == "http.request.uuid" || strings.HasPrefix(name, "http.request.duration"):
		return "it differs for every request, so nothing would be limited", nil
	case strings.HasPrefix(name, "http.request.") && !isOfRequests(name):
		return "", fmt.Errorf("Caddy has no placeholder {%s}: it would be empty for every request", name)
	case !strings.Contains(name, "."):
		return fmt.Sprintf("{%s} is not one of Caddy's placeholders: it is empty for every request unless another directive sets it", name), nil
	}
	return "", nil
}

// isOfRequests reports whether Caddy may have a value for the placeholder in a request. It tries a made-up request, and
// returns true if Caddy cannot evaluate the placeholder for this request.
func isOfRequests(name string) (found bool) {
	if strings.HasPrefix(name, "http.request.tls.") {
		return true
	}
	r := httptest.NewRequest(http.MethodGet, "https://example.com/a/b?c=d", nil)
	ctx := context.WithValue(r.Context(), caddyhttp.VarsCtxKey, map[string]any{})
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, net.Addr(&net.TCPAddr{}))
	ctx = context.WithValue(ctx, caddyhttp.OriginalRequestCtxKey, *r)
	ctx = context.WithValue(ctx, caddyhttp.ExtraLogFieldsCtxKey, new(caddyhttp.ExtraLogFields))
	r = r.WithContext(ctx)
	defer func() {
		if recover() != nil {
			found = true
		}
	}()
	_, found = caddyhttp.NewTestReplacer(r).Get(name)
	return found
}
