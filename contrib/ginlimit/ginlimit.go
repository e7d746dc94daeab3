// Package ginlimit limits requests of Gin by the limits of httplimit.
//
//	limits, err := httplimit.New([]httplimit.Limit{{Name: "default", Limiter: limiter, Key: ip.Key}})
//	...
//	router.Use(ginlimit.Handler(limits))
//
// The key should be that of an [httplimit.ClientIP]: Gin's own ClientIP believes every proxy, unless told otherwise.
package ginlimit

import (
	"github.com/gin-gonic/gin"

	"github.com/weir-go/weir/httplimit"
)

// Handler returns a middleware of limits of any kind, also of those with a Refund, which gets the status that the
// handlers set, and of requests in flight, which end when the handlers return. A refused request reaches no handler
// behind it. It is safe for concurrent use, and costs what the limits cost.
func Handler(limits *httplimit.Middleware) gin.HandlerFunc {
	return func(c *gin.Context) {
		res := limits.Decide(c.Request)
		if !res.Allowed() {
			res.Refuse(c.Writer, c.Request)
			c.Abort()
			return
		}
		defer res.Release() // where a handler panics
		res.WriteHeaders(c.Writer.Header())
		c.Next()
		res.Finish(c.Request, c.Writer.Status())
	}
}
