// An HTTP server with a chi router. Each client address may make ten requests per minute, with a burst of five. Writes
// need an API key, and each key allows two writes per minute from any address. README.md says how to try it.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// users contains the users that may write, by their API keys.
var users = map[string]string{"secret-a": "anna", "secret-b": "bert"}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "`address` to listen on")
	trust := flag.String("trust", "", "`addresses` of the proxies whose X-Forwarded-For is trusted, such as 10.0.0.0/8")
	flag.Parse()

	var proxies []httplimit.IPOption
	if *trust != "" {
		proxies = append(proxies, httplimit.TrustProxies(strings.Split(*trust, ",")...))
	}
	ip := must(httplimit.NewClientIP(proxies...))

	requests := must(engine.New(engine.TokenBucket(engine.Per(10, time.Minute), 5)))
	writes := must(engine.New(engine.FixedWindow(2, time.Minute)))
	byClient := httplimit.Limit{Name: "requests", Limiter: requests, Key: ip.Key}
	byUser := httplimit.Limit{Name: "writes", Limiter: writes, Key: userKey}
	reading := must(httplimit.New([]httplimit.Limit{byClient}))
	writing := must(httplimit.New([]httplimit.Limit{byClient, byUser})) // all or nothing

	router := chi.NewRouter() // chi's RealIP must not come before the limits: it trusts every client
	router.With(reading.Handler).Get("/notes", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "a note") })
	router.With(writing.Handler, authenticate).Post("/notes", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
	})

	listener := must(net.Listen("tcp", *listen))
	log.Printf("listening on http://%s", listener.Addr())
	server := &http.Server{Handler: router, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(listener))
}

// userKey gives each user one bucket for all addresses. An unknown API key has no bucket, so a client cannot get new
// buckets by making up keys. For an unknown API key, only the address's limit applies, and authenticate refuses the
// request.
func userKey(h httplimit.Hasher, r *http.Request) (engine.Key, bool) {
	user, known := users[r.Header.Get("X-API-Key")]
	return h.Key(user), known
}

// authenticate refuses requests without a known API key.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, known := users[r.Header.Get("X-API-Key")]; !known {
			http.Error(w, "no such API key", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err) // the error names the value and the range
	}
	return v
}
