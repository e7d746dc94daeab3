package main

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
	"unsafe"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// A limit is one limit of a route. The function key returns the key that is charged for a request, or false if the
// limit does not apply.
type limit struct {
	name    string
	limiter *engine.Limiter
	key     func(l *engine.Limiter, ctx *fasthttp.RequestCtx) (engine.Key, bool)
}

// limited returns a Fiber middleware that takes a token from each of the limits, or from none of them if one refuses.
// The names of limits must be printable ASCII without quotes.
func limited(limits ...limit) fiber.Handler {
	return func(c fiber.Ctx) error {
		requests, applied := make([]engine.Request, 0, len(limits)), make([]limit, 0, len(limits))
		for _, l := range limits {
			if key, applies := l.key(l.limiter, c.RequestCtx()); applies {
				requests, applied = append(requests, engine.Request{Limiter: l.limiter, Key: key, N: 1}), append(applied, l)
			}
		}
		if len(requests) == 0 {
			return c.Next()
		}
		answers := make([]engine.Answer, len(requests))
		allowed, err := engine.TakeAll(requests, answers)
		if err != nil {
			return err // the program has listed the same limit twice
		}
		shown := 0 // the limit to show: the one with the fewest tokens left, or after a refusal the longest wait
		for i, a := range answers {
			d, tightest := a.Decision, answers[shown].Decision
			if allowed && d.Remaining < tightest.Remaining || !allowed && d.RetryAfter > tightest.RetryAfter {
				shown = i
			}
			policy := applied[i].limiter.Policy(0)
			c.Append("RateLimit-Policy", fmt.Sprintf(`"%s";q=%d;w=%d`, applied[i].name, policy.Limit(), seconds(policy.Window())))
		}
		d := answers[shown].Decision
		wait := d.ResetAfter
		if !allowed {
			wait = d.RetryAfter
			c.Set("Retry-After", strconv.Itoa(seconds(wait)))
		}
		c.Set("RateLimit", fmt.Sprintf(`"%s";r=%d;t=%d`, applied[shown].name, d.Remaining, seconds(wait)))
		if !allowed {
			return c.Status(fiber.StatusTooManyRequests).JSON(fiber.Map{"error": "Too many requests"})
		}
		return c.Next()
	}
}

// seconds rounds up, because a client that waits for this time must not come too early.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// clientKey returns a key function for the client's address. An IPv6 address is cut to its /64 prefix.
func clientKey(ip *httplimit.ClientIP) func(*engine.Limiter, *fasthttp.RequestCtx) (engine.Key, bool) {
	return func(l *engine.Limiter, ctx *fasthttp.RequestCtx) (engine.Key, bool) {
		return l.KeyAddr(ip.PrefixOf(clientAddr(ip, ctx)).Addr()), true
	}
}

// clientAddr returns the address of the client, by the rules of httplimit. Fiber's own c.IP() is not safe: it reads the
// header from every client, and takes the first address, which the client may have written.
//
// A proxy may add its line after the client's line, so clientAddr reads all lines. The next request reuses the memory
// of the lines. This does not affect the returned address, because the address is a value.
func clientAddr(ip *httplimit.ClientIP, ctx *fasthttp.RequestCtx) netip.Addr {
	var peer netip.Addr // stays the zero Addr for a Unix socket, where ctx.RemoteIP() returns 0.0.0.0
	if tcp, ok := ctx.RemoteAddr().(*net.TCPAddr); ok {
		peer = tcp.AddrPort().Addr()
	}
	return ip.AddrOf(peer, func() []string {
		lines := ctx.Request.Header.PeekAll(ip.Header())
		texts := make([]string, len(lines))
		for i, line := range lines {
			texts[i] = unsafe.String(unsafe.SliceData(line), len(line))
		}
		return texts
	})
}

// userKey is the key function for the user of an API key. An unknown API key has no bucket, because a client could
// otherwise get new buckets by making up keys.
func userKey(l *engine.Limiter, ctx *fasthttp.RequestCtx) (engine.Key, bool) {
	user, known := users[string(ctx.Request.Header.Peek("X-API-Key"))]
	return l.Key(user), known
}

// everyone is the key function of a limit that all requests share.
func everyone(l *engine.Limiter, _ *fasthttp.RequestCtx) (engine.Key, bool) {
	return l.Key("everyone"), true
}
