// A server with a Gin engine. Each client gets ten tokens per minute, with a burst of five. A search takes three
// tokens, and any other request takes one. README.md says how to try it.
package main

import (
	"flag"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/weir-go/weir/contrib/ginlimit"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "`address` to listen on")
	trust := flag.String("trust", "", "`addresses` of the proxies whose X-Forwarded-For is trusted, such as 10.0.0.0/8")
	flag.Parse()

	var proxies []httplimit.IPOption
	if *trust != "" {
		proxies = append(proxies, httplimit.TrustProxies(strings.Split(*trust, ",")...))
	}
	ip := must(httplimit.NewClientIP(proxies...)) // Gin's ClientIP trusts every proxy, unless configured otherwise
	tokens := must(engine.New(engine.TokenBucket(engine.Per(10, time.Minute), 5)))

	// costs returns a Gin middleware for routes whose requests take n tokens. All routes share the limiter.
	costs := func(n uint64) gin.HandlerFunc {
		return ginlimit.Handler(must(httplimit.New([]httplimit.Limit{{
			Name: "tokens", Limiter: tokens, Key: ip.Key, Cost: func(*http.Request) uint64 { return n },
		}})))
	}

	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.GET("/notes", costs(1), func(c *gin.Context) { c.JSON(http.StatusOK, "a note") })
	router.GET("/search", costs(3), func(c *gin.Context) { c.JSON(http.StatusOK, []string{"a note"}) })

	listener := must(net.Listen("tcp", *listen))
	log.Printf("listening on http://%s", listener.Addr())
	server := &http.Server{Handler: router, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(listener))
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err) // the error names the value and the range
	}
	return v
}
