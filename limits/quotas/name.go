package quotas

import (
	"fmt"
	"net/textproto"
	"slices"
	"strings"
)

// connectionFields has the names of header fields for one connection (RFC 9110, section 7.6.1) or for HTTP itself.
var connectionFields = []string{
	"Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Max-Forwards", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// standardFields has the names of header fields with a meaning in requests, by RFC 9110, 9111, 6265 or 7239, or for
// proxies.
var standardFields = []string{
	"Accept", "Authorization", "Cache-Control", "Cookie", "Date", "Forwarded", "From", "Origin", "Pragma", "Range", "Referer",
	"User-Agent", "Via", "X-Real-Ip", "X-Request-Id",
}

// CheckName returns an error if a header field with this name cannot carry limits. Fronts remove the field from the
// requests of clients. So the field must not apply to one connection only, or have another meaning. The name may have
// only letters, digits and hyphens, because some servers treat X_Plan and X-Plan as the same field.
func CheckName(name string) error {
	if name == "" || strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-'
	}) {
		return fmt.Errorf("%q: want a name of letters, digits and hyphens, such as X-RateLimit-Policy: servers may confuse other names", name)
	}
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	switch {
	case slices.Contains(connectionFields, canonical):
		return fmt.Errorf("%s is for one connection alone: want a field of its own, such as X-RateLimit-Policy", name)
	case slices.Contains(standardFields, canonical) || slices.ContainsFunc([]string{"Accept-", "Content-", "If-", "Sec-", "X-Forwarded-"},
		func(prefix string) bool { return strings.HasPrefix(canonical, prefix) }):
		return fmt.Errorf("%s has another meaning: want a field of its own, such as X-RateLimit-Policy", name)
	}
	return nil
}
