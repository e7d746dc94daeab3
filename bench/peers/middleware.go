package peers

import (
	"net"
	"net/http"
	"time"

	"github.com/didip/tollbooth/v7"
	"github.com/didip/tollbooth/v7/limiter"
	"github.com/go-chi/httprate"
	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"
)

// A Middleware limits each client address in front of a handler, and sends its default headers.
type Middleware struct {
	Name string
	New  func(limit Limit, next http.Handler) http.Handler
}

// Middlewares returns the middlewares of the peers, in the order of the tables.
func Middlewares() []Middleware {
	return []Middleware{
		{"httprate, middleware", func(limit Limit, next http.Handler) http.Handler {
			return httprate.LimitBy(limit.Tokens, limit.Per, func(r *http.Request) (string, error) {
				ip, _, err := net.SplitHostPort(r.RemoteAddr)
				return httprate.CanonicalizeIP(ip), err
			})(next)
		}},
		{"tollbooth, middleware", func(limit Limit, next http.Handler) http.Handler {
			l := tollbooth.NewLimiter(limit.rate(), &limiter.ExpirableOptions{DefaultExpirationTTL: time.Hour})
			return tollbooth.LimitHandler(l.SetBurst(limit.Burst).SetIPLookups([]string{"RemoteAddr"}), next)
		}},
		{"echo, middleware", func(limit Limit, next http.Handler) http.Handler {
			e := echo.New()
			e.Use(middleware.RateLimiter(middleware.NewRateLimiterMemoryStoreWithConfig(
				middleware.RateLimiterMemoryStoreConfig{Rate: limit.rate(), Burst: limit.Burst})))
			e.GET("/", func(c *echo.Context) error {
				next.ServeHTTP(c.Response(), c.Request())
				return nil
			})
			return e
		}},
	}
}
