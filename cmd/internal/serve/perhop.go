package serve

import (
	"net/http"
	"net/textproto"
	"strings"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// dropPerHop removes the fields that a request's Connection field names. They are for this hop only (RFC 9110, section
// 7.6.1), and [httputil.ReverseProxy] does not pass them on. The rules must not see them either, because a client could
// choose its bucket by a key that the upstream does not get.
//
// The fields in which a trusted proxy reports the client's address or limit stay, because a proxy may pass on its
// client's Connection.
func dropPerHop(r *http.Request, f *rulefile.File) {
	for _, line := range r.Header["Connection"] {
		for more := line != "keep-alive" && line != "close"; more; {
			var name string
			name, line, more = strings.Cut(line, ",")
			switch name = http.CanonicalHeaderKey(textproto.TrimString(name)); {
			case name == "Te", name == "Upgrade": // ReverseProxy reads them
			case f.IsOfProxies(name):
			default:
				delete(r.Header, name)
			}
		}
	}
}
