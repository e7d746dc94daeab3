// A server with net/http. Each client may make ten requests per minute, with a burst of five. At most two of the ten
// may be posts. README.md says how to try it.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "`address` to listen on")
	trust := flag.String("trust", "", "`addresses` of the proxies whose X-Forwarded-For is trusted, such as 10.0.0.0/8")
	flag.Parse()

	// Without proxies, the client is the peer of the connection, because any client can write X-Forwarded-For. With
	// proxies, the header is read from right to left, up to the first address that does not belong to a proxy.
	var proxies []httplimit.IPOption
	if *trust != "" {
		proxies = append(proxies, httplimit.TrustProxies(strings.Split(*trust, ",")...))
	}
	ip := must(httplimit.NewClientIP(proxies...))

	requests := must(engine.New(engine.TokenBucket(engine.Per(10, time.Minute), 5)))
	posts := must(engine.New(engine.FixedWindow(2, time.Minute)))
	limits := must(httplimit.New([]httplimit.Limit{ // all or nothing: if one limit refuses, the other loses no token
		{Name: "requests", Limiter: requests, Key: ip.Key},
		{Name: "posts", Limiter: posts, Key: ip.Key, Match: func(r *http.Request) bool { return r.Method == http.MethodPost }},
	}))

	mux := http.NewServeMux()
	mux.HandleFunc("GET /notes", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "a note") })
	mux.HandleFunc("POST /notes", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) })

	listener := must(net.Listen("tcp", *listen))
	log.Printf("listening on http://%s", listener.Addr())
	server := &http.Server{Handler: limits.Handler(mux), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(listener))
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err) // the error names the value and the range
	}
	return v
}
