// Package fiberlimit applies the limits of httplimit to requests of Fiber.
//
//	limits, err := httplimit.New([]httplimit.Limit{{Name: "default", Limiter: limiter, Key: ip.Key}})
//	...
//	app.Use(fiberlimit.Handler(limits))
//
// To limit by address, use the key of an [httplimit.ClientIP]. Fiber's own IP is not safe: if it is configured to read
// a header, it trusts this header of every client.
package fiberlimit

import (
	"bytes"
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/weir-go/weir/httplimit"
)

// Handler returns a middleware for limits of any kind. A Refund function gets the status of the answer. A request is in
// flight until the handlers return. A refused request does not reach the later handlers. The middleware is safe for
// concurrent use.
//
// The limits need an [http.Request]. To make this request takes some microseconds and allocates. To avoid this cost,
// decide with package engine, as in examples/fiber.
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
		defer res.Release() // in case a handler panics
		headers := http.Header{}
		res.WriteHeaders(headers)
		set(c, headers)
		err = c.Next()
		status := c.Response().StatusCode()
		if err != nil { // Fiber's error handler writes the status after its middlewares
			status = fiber.StatusInternalServerError
			if e, ok := err.(*fiber.Error); ok {
				status = e.Code
			}
		}
		res.Finish(r, status)
		return err
	}
}

// request returns the request for the limits, without the body but with all lines of a header field. If it had only the
// last line, as in fasthttpadaptor, a program that reads the first line would see another key than the limits.
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
	r.Header.Del("Host") // the host is in r.Host
	return r, nil
}

// An answer collects the refusal of httplimit for Fiber.
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
