// Package echolimit applies the limits of httplimit to requests of Echo.
//
//	limits, err := httplimit.New([]httplimit.Limit{{Name: "default", Limiter: limiter, Key: ip.Key}})
//	...
//	e.Use(echolimit.Middleware(limits))
package echolimit

import (
	"github.com/labstack/echo/v5"

	"github.com/weir-go/weir/httplimit"
)

// Middleware returns a middleware for limits of any kind. A Refund function gets the status of the answer. A request is
// in flight until the handler returns. A refused request does not reach the handler. The middleware is safe for
// concurrent use and adds nothing to the cost of the limits.
//
// Do not use echo.WrapMiddleware(limits.Handler) for limits with a Refund. Echo writes the answer to an error after its
// middlewares, so Refund would miss a status such as 401. A limit that refunds successful logins would then also refund
// every failed login.
func Middleware(limits *httplimit.Middleware) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			res := limits.Decide(c.Request())
			if !res.Allowed() {
				res.Refuse(c.Response(), c.Request())
				return nil
			}
			defer res.Release() // in case a handler panics
			res.WriteHeaders(c.Response().Header())
			err := next(c)
			_, status := echo.ResolveResponseStatus(c.Response(), err)
			res.Finish(c.Request(), status)
			return err
		}
	}
}
