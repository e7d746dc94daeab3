// Package fiberlimit limits requests of Fiber by the limits of httplimit.
//
//	limits, err := httplimit.New([]httplimit.Limit{{Name: "default", Limiter: limiter, Key: ip.Key}})
//	...
//	app.Use(fiberlimit.Handler(limits))
//
// The key should be that of an [httplimit.ClientIP]: Fiber's own IP reads what it is told to from everybody.
package fiberlimit

import (
	"bytes"
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/weir-go/weir/httplimit"
)

// Handler returns a middleware of limits of any kind, also of those with a Refund, which gets the status of the answer,
// and of requests in flight, which end when the handlers return. A refused request reaches no handler behind it. It is
// safe for concurrent use.
//
// Its cost is that of the limits, and of an [http.Request] that is made of Fiber's for their functions: some
// microseconds, and allocations. The examples show how to decide by package engine without it.
func Handler(limits *httplimit.Middleware) fiber.Handler {
	return func(c fiber.Ctx) error {
		r, err := request(c.RequestCtx())
		if err != nil {
			return fiber.NewError(fiber.StatusBadRequest, err.Error())
		}
		r = r.WithContext(c.Context())
		res := limits.Decide(r)
		if !res.Allowed() {
			refusal := answer{header: http.Header{}, status: http.StatusOK}
			res.Refuse(&refusal, r)
			set(c, refusal.header)
			return c.Status(refusal.status).Send(refusal.body.Bytes())
		}
		defer res.Release() // where a handler panics
		headers := http.Header{}
		res.WriteHeaders(headers)
		set(c, headers)
		err = c.Next()
		status := c.Response().StatusCode()
		if err != nil { // Fiber's error handler writes it after its middlewares
			status = fiber.StatusInternalServerError
			if e, ok := err.(*fiber.Error); ok {
				status = e.Code
			}
		}
		res.Finish(r, status)
		return err
	}
}

// request returns what the limits read of a request: all but the body. Each line of a field is kept, unlike by
// fasthttpadaptor, which keeps the last one: a program that reads the first would see another key than the limits.
func request(ctx *fasthttp.RequestCtx) (*http.Request, error) {
	target := string(ctx.RequestURI())
	to, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, err
	}
	r := &http.Request{
		Method: string(ctx.Method()), URL: to, RequestURI: target, Proto: string(ctx.Request.Header.Protocol()),
		ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Host: string(ctx.Host()), RemoteAddr: ctx.RemoteAddr().String(),
		ContentLength: int64(ctx.Request.Header.ContentLength()), Body: http.NoBody, TLS: ctx.TLSConnectionState(),
	}
	for name, value := range ctx.Request.Header.All() {
		r.Header.Add(string(name), string(value))
	}
	r.Header.Del("Host") // it is r.Host
	return r, nil
}

// An answer is what httplimit writes instead of Fiber.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header                { return a.header }
func (a *answer) WriteHeader(status int)             { a.status = status }
func (a *answer) Write(text []byte) (n int, _ error) { return a.body.Write(text) }

func set(c fiber.Ctx, headers http.Header) {
	for name, values := range headers {
		c.Response().Header.Del(name)
		for _, v := range values {
			c.Response().Header.Add(name, v)
		}
	}
}
