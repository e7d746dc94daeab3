package serve

import (
	"fmt"
	"net/http"

	"github.com/weir-go/weir/engine"
)

// echo answers for an upstream when there is none: it shows a newcomer with curl
// what the limiter saw and what is left.
func echo(w http.ResponseWriter, r *http.Request, who client, d engine.Decision) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff") // what is echoed is the client's
	// An error here means that the client is gone; there is nobody to tell.
	_, _ = fmt.Fprintf(w, "admitted by weir\n\nmethod     %s\npath       %s\nclient     %s\nremaining  %d of %d tokens\n",
		r.Method, r.URL.RequestURI(), who, d.Remaining, d.Limit)
}
