package serve

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/weir-go/weir/httplimit"
)

// echo answers requests if there is no upstream. It shows a newcomer with curl which values were limited, and what is
// left.
func echo(ip *httplimit.ClientIP) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var limits []string
		for name, values := range w.Header() { // so far, these are the fields of the limits
			limits = append(limits, name+": "+strings.Join(values, ", ")+"\n")
		}
		slices.Sort(limits)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff") // the client chooses the echoed text
		// An error means that the client is gone.
		_, _ = fmt.Fprintf(w, "admitted by weir\n\nmethod  %s\nhost    %s\npath    %s\nclient  %s\n\n%s",
			r.Method, r.Host, r.URL.RequestURI(), ip.Addr(r), strings.Join(limits, ""))
	})
}
