package serve

import (
	"net/http"
	"net/textproto"
	"strings"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// dropPerHop removes the fields that a request's Connection field names. They are only for the connection between
// client and weir (RFC 9110, section 7.6.1), and [httputil.ReverseProxy] drops them. If rules used them, a client could
// choose its bucket by a field that the upstream never gets.
//
// The fields in which a trusted proxy reports the client's address or limit stay: the proxy may have passed on the
// Connection field of its client.
func dropPerHop(r *http.Request, f *rulefile.File) {
	for _, line := range r.Header["Connection"] {
		for more := line != "keep-alive" && line != "close"; more; {
			var name string
			name, line, more = strings.Cut(line, ",")
			switch name = http.CanonicalHeaderKey(textproto.TrimString(name)); {
			case name == "Te", name == "Upgrade": // ReverseProxy needs these
			case f.IsOfProxies(name):
			default:
				delete(r.Header, name)
			}
		}
	}
}
