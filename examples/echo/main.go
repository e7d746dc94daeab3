// A server with Echo that limits failed logins to three per minute for each client. A successful login does not count.
// README.md says how to try it.
package main

import (
	"crypto/subtle"
	"flag"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/weir-go/weir/contrib/echolimit"
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
	ip := must(httplimit.NewClientIP(proxies...))
	failures := must(engine.New(engine.TokenBucket(engine.Per(3, time.Minute), 3)))
	logins := must(httplimit.New([]httplimit.Limit{{
		Name: "failed logins", Limiter: failures, Key: ip.Key, Refund: httplimit.RefundStatus(200, 299),
	}}))

	e := echo.New()
	e.POST("/login", func(c *echo.Context) error {
		if subtle.ConstantTimeCompare([]byte(c.FormValue("password")), []byte("right")) == 0 {
			return echo.NewHTTPError(http.StatusUnauthorized, "wrong password")
		}
		return c.String(http.StatusOK, "welcome\n")
	}, echolimit.Middleware(logins))

	listener := must(net.Listen("tcp", *listen))
	log.Printf("listening on http://%s", listener.Addr())
	server := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(listener))
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err) // the error names the value and the range
	}
	return v
}
