package httplimit

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
)

// A Limit is one of the limits of a [Middleware]: see [limits.Limit]. Name and one of Limiter, Spread and Source must
// be set. A nil Key means [RemoteIP], unless Spread is set. The functions of a Limit must not change the request or
// read its body.
//
// Name appears in headers, bodies and metrics. Unit appears in RateLimit-Policy. Refund gets the status of the
// response. The status is 101 for a hijacked connection, and 500 if the handler panicked before it wrote a status. See
// [RefundStatus].
//
// [Middleware.Handler] does not call Refund, and gives nothing back, in these cases:
//
//   - The client had gone when the answer began.
//   - The body of the request broke off.
//   - The handler panicked after it wrote a status.
//   - A gRPC call has a status other than OK.
//
// A proxy may answer 502 because its server failed, or because the client has gone. Only the request's context shows
// which of the two it was. So a handler that is a proxy must use this context.
type Limit = limits.Limit[*http.Request]

// A KeyFunc returns the key from which a request takes its tokens: see [limits.KeyFunc].
type KeyFunc = limits.KeyFunc[*http.Request]

// A Hasher makes the keys of one limit: see [limits.Hasher].
type Hasher = limits.Hasher

// A Check has the effect of one limit on a request: see [limits.Check].
type Check = limits.Check[*http.Request]

// headerTexts has the parts of headers that describe a limit. They are formatted once and then reused.
type headerTexts struct {
	quoted   string                           // the name as a string of RFC 9651, which is also a string of JSON
	unit     string                           // ";qu=..." or ""
	policies [16]atomic.Pointer[renderedItem] // one for each tier; the last one is for tiers that do not exist
}

// A renderedItem has the text of an item of RateLimit-Policy, and the numbers in this text.
type renderedItem struct {
	quota  uint64
	window time.Duration
	text   string
}

// newTexts returns the header texts of a limit.
func newTexts(l *Limit) *headerTexts {
	t := &headerTexts{quoted: quote(l.Name)}
	if l.Unit != "" {
		t.unit = ";qu=" + quote(l.Unit)
	}
	return t
}

// quote writes printable ASCII as a string of RFC 9651. The result is also a string of JSON.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// reset returns the time until the key is idle again. After a refusal, it returns the time until the request can pass.
func reset(c *Check) time.Duration {
	if c.Decision.Allowed || c.Decision.RetryAfter == engine.Never {
		return c.Decision.ResetAfter
	}
	return max(c.Decision.RetryAfter, 1)
}
