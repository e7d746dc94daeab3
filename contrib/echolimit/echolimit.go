// Package echolimit limits requests of Echo by the limits of httplimit.
//
//	limits, err := httplimit.New([]httplimit.Limit{{Name: "default", Limiter: limiter, Key: ip.Key}})
//	...
//	e.Use(echolimit.Middleware(limits))
package echolimit

import (
	"github.com/labstack/echo/v5"

	"github.com/weir-go/weir/httplimit"
)

// Middleware returns a middleware of limits of any kind, also of those with a Refund, which gets the status of the
// answer, and of requests in flight, which end when the handler returns. A refused request does not reach it. The
// middleware is safe for concurrent use, and costs what the limits cost.
//
// echo.WrapMiddleware(limits.Handler) must not be used for limits with a Refund: Echo writes the answer to an error
// after its middlewares. They see no 401, and every failed login would be given back.
func Middleware(limits *httplimit.Middleware) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			res := limits.Decide(c.Request())
			if !res.Allowed() {
				res.Refuse(c.Response(), c.Request())
				return nil
			}
			defer res.Release() // where a handler panics
			res.WriteHeaders(c.Response().Header())
			err := next(c)
			_, status := echo.ResolveResponseStatus(c.Response(), err)
			res.Finish(c.Request(), status)
			return err
		}
	}
}
