// A server with Fiber. Each client may make ten requests per minute, with a burst of five. All clients together may
// make a thousand requests per second, and a user may make two writes per minute. The middleware is in limit.go.
// README.md says how to try it.
package main

import (
	"flag"
	"log"
	"net"
	"strings"
	"time"

	"github.com/gofiber/fiber/v3"

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
	byClient := limit{"requests", must(engine.New(engine.TokenBucket(engine.Per(10, time.Minute), 5))), clientKey(ip)}
	together := limit{"everyone", must(engine.New(engine.TokenBucket(engine.PerSecond(1000), 2000))), everyone}
	byUser := limit{"writes", must(engine.New(engine.FixedWindow(2, time.Minute))), userKey}

	app := fiber.New(fiber.Config{ReadTimeout: 10 * time.Second})
	app.Get("/notes", limited(byClient, together), func(c fiber.Ctx) error { return c.SendString("a note\n") })
	app.Post("/notes", limited(byClient, together, byUser), func(c fiber.Ctx) error {
		if _, known := users[string(c.Request().Header.Peek("X-API-Key"))]; !known {
			return c.Status(fiber.StatusUnauthorized).SendString("no such API key\n")
		}
		return c.SendStatus(fiber.StatusCreated)
	})

	listener := must(net.Listen("tcp", *listen))
	log.Printf("listening on http://%s", listener.Addr())
	log.Fatal(app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}))
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err) // the error names the value and the range
	}
	return v
}
