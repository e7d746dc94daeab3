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
// be set. If Spread is not set, a nil Key means [RemoteIP]. Its functions must not change the request or read its body.
//
// Name appears in headers, bodies and metrics, and Unit in RateLimit-Policy. The outcome that Refund gets is the status
// of the response: 101 for a hijacked connection, 500 for a handler that panicked before it wrote a status. See
// [RefundStatus].
//
// [Middleware.Handler] does not call Refund, and gives nothing back, in four cases: the client had gone when the answer
// began, the body of the request broke off, the handler panicked after it wrote a status, or a gRPC call has a status
// other than OK. A proxy may answer 502 because its server failed, or because its client has gone. It must distinguish
// the two by the request's context.
type Limit = limits.Limit[*http.Request]

// A KeyFunc returns the key from which a request takes its tokens: see [limits.KeyFunc].
type KeyFunc = limits.KeyFunc[*http.Request]

// A Hasher makes the keys of one limit: see [limits.Hasher].
type Hasher = limits.Hasher

// A Check has the effect of one limit on a request: see [limits.Check].
type Check = limits.Check[*http.Request]

// texts are the parts of headers that describe a limit, formatted once.
type texts struct {
	quoted   string                       // the name as a string of RFC 9651, which is also a string of JSON
	unit     string                       // ";qu=..." or ""
	policies [16]atomic.Pointer[rendered] // one for each tier; the last stands for tiers that do not exist
}

// rendered is an item of RateLimit-Policy, and the numbers in it.
type rendered struct {
	quota  uint64
	window time.Duration
	text   string
}

// newTexts returns the texts of a limit.
func newTexts(l *Limit) *texts {
	t := &texts{quoted: quote(l.Name)}
	if l.Unit != "" {
		t.unit = ";qu=" + quote(l.Unit)
	}
	return t
}

// quote writes printable ASCII as a string of RFC 9651, which is also a string of JSON.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// reset returns the time until the key is idle again, or after a refusal, until the request can pass.
func reset(c *Check) time.Duration {
	if c.Decision.Allowed || c.Decision.RetryAfter == engine.Never {
		return c.Decision.ResetAfter
	}
	return max(c.Decision.RetryAfter, 1)
}
