// Package ginlimit applies the limits of httplimit to requests of Gin.
//
//	limits, err := httplimit.New([]httplimit.Limit{{Name: "default", Limiter: limiter, Key: ip.Key}})
//	...
//	router.Use(ginlimit.Handler(limits))
//
// To limit by address, use the key of an [httplimit.ClientIP]. Gin's own ClientIP is not safe: it trusts every proxy,
// unless it is configured otherwise.
package ginlimit

import (
	"github.com/gin-gonic/gin"

	"github.com/weir-go/weir/httplimit"
)

// Handler returns a middleware for limits of any kind. A Refund function gets the status that the handlers set. A
// request is in flight until the handlers return. A refused request does not reach the later handlers. The middleware
// is safe for concurrent use and adds nothing to the cost of the limits.
func Handler(limits *httplimit.Middleware) gin.HandlerFunc {
	return func(c *gin.Context) {
		res := limits.Decide(c.Request)
		if !res.Allowed() {
			res.Refuse(c.Writer, c.Request)
			c.Abort()
			return
		}
		defer res.Release() // in case a handler panics
		res.WriteHeaders(c.Writer.Header())
		c.Next()
		res.Finish(c.Request, c.Writer.Status())
	}
}
