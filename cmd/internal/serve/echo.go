package serve

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/weir-go/weir/httplimit"
)

// echo answers requests if there is no upstream. It shows which limits applied to a request. It is for people who try
// weir with curl.
func echo(ip *httplimit.ClientIP) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var limits []string
		for name, values := range w.Header() { // so far, it has only the fields about limits
			limits = append(limits, name+": "+strings.Join(values, ", ")+"\n")
		}
		slices.Sort(limits)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff") // because the client chooses the text of the echo
		// An error means that the client has gone.
		_, _ = fmt.Fprintf(w, "admitted by weir\n\nmethod  %s\nhost    %s\npath    %s\nclient  %s\n\n%s",
			r.Method, r.Host, r.URL.RequestURI(), ip.Addr(r), strings.Join(limits, ""))
	})
}
