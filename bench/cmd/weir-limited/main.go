// Command weir-limited serves HTTP behind a limit of another library, for make test-audit.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/didip/tollbooth/v7"
	"github.com/go-chi/httprate"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: weir-limited httprate|tollbooth ADDRESS")
		os.Exit(80)
	}
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	switch os.Args[1] {
	case "httprate":
		byIP := func(r *http.Request) (string, error) {
			host, _, err := net.SplitHostPort(r.RemoteAddr)
			return host, err
		}
		handler = httprate.LimitBy(15, 3*time.Second, byIP)(handler)
	case "tollbooth":
		limit := tollbooth.NewLimiter(5, nil).SetBurst(12)
		limit.SetIPLookups([]string{"RemoteAddr"})
		handler = tollbooth.LimitHandler(limit, handler)
	}
	server := http.Server{Addr: os.Args[2], Handler: handler, ReadHeaderTimeout: time.Minute}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}
