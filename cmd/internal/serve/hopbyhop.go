package serve

import (
	"net/http"
	"net/textproto"
	"strings"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// dropHopByHop removes the fields that the Connection field of a request names. They are only for the connection
// between the client and weir (RFC 9110, section 7.6.1), and [httputil.ReverseProxy] would drop them later. So if rules
// used such a field, a client could choose its bucket by a field that the upstream never gets.
//
// dropHopByHop keeps the fields by which a trusted proxy reports the address or the limit of a client. The proxy may
// have passed on the Connection field of its client.
func dropHopByHop(r *http.Request, f *rulefile.File) {
	for _, line := range r.Header["Connection"] {
		for hasMore := line != "keep-alive" && line != "close"; hasMore; {
			var name string
			name, line, hasMore = strings.Cut(line, ",")
			switch name = http.CanonicalHeaderKey(textproto.TrimString(name)); {
			case name == "Te", name == "Upgrade": // ReverseProxy needs these
			case f.IsProxyHeader(name):
			default:
				delete(r.Header, name)
			}
		}
	}
}
