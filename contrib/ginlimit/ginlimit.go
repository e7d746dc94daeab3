// Package ginlimit applies the limits of httplimit to requests of Gin.
//
//	limits, err := httplimit.New([]httplimit.Limit{{Name: "default", Limiter: limiter, Key: ip.Key}})
//	...
//	router.Use(ginlimit.Handler(limits))
//
// The key should be that of an [httplimit.ClientIP]. Gin's own ClientIP trusts every proxy, unless configured
// otherwise.
package ginlimit

import (
	"github.com/gin-gonic/gin"

	"github.com/weir-go/weir/httplimit"
)

// Handler returns a middleware for limits of any kind. This includes limits with a Refund, which get the status that
// the handlers set, and limits of requests in flight, whose requests end when the handlers return. A refused request
// does not reach the handlers behind it. The middleware is safe for concurrent use, and costs no more than the limits.
func Handler(limits *httplimit.Middleware) gin.HandlerFunc {
	return func(c *gin.Context) {
		res := limits.Decide(c.Request)
		if !res.Allowed() {
			res.Refuse(c.Writer, c.Request)
			c.Abort()
			return
		}
		defer res.Release() // if a handler panics
		res.WriteHeaders(c.Writer.Header())
		c.Next()
		res.Finish(c.Request, c.Writer.Status())
	}
}
