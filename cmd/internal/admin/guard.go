package admin

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/weir-go/weir/internal/spelling"
)

// policy lets the page use its own files and server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard stops requests that another site makes the operator's browser send: see the package comment.
func guard(next http.Handler, hosts []string) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if !isLocal(r.Host) && !slices.Contains(hosts, spelling.Host(r.Host)) {
			writeText(w, http.StatusForbidden, "the Host header names neither localhost nor an IP address: "+
				"ask for http://localhost or the address itself, or allow the host: admin.hosts in weir's rule file, DEBUG_HOSTS of weir-envoy")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLocal reports whether a host cannot belong to another site: localhost, a name below it, or an address.
func isLocal(host string) bool {
	host = spelling.Host(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}
