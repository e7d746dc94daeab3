package httplimit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"math/bits"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-go/weir/engine"
)

// A HeaderStyle is a set of headers that tell a client how many tokens it has left. Combine styles with |.
type HeaderStyle uint8

const (
	// IETF is the pair of headers of draft-ietf-httpapi-ratelimit-headers, versions 8 to 10, as structured fields (RFC
	// 9651):
	//
	//	RateLimit-Policy: "default";q=100;w=60
	//	RateLimit: "default";r=50;t=30
	//
	// RateLimit-Policy lists every limit that applies and is not in shadow mode: q is the largest number of tokens that
	// a key can have, and w is the number of seconds in which q tokens come back. RateLimit shows the tightest limit: r
	// is the number of tokens left, and t is a number of seconds.
	//
	//   - Bucket: t is the time in which r tokens come back, or the time until the bucket is full.
	//   - Window: t is the time until the window ends, or until the oldest request leaves a sliding log
	//     ([engine.Decision.ResetAfter]). Earlier requests of a sliding window may still count then.
	//   - Refusal: t is the time until the request can pass.
	//
	// A limit of requests in flight has no window, so it has no w. It is not in RateLimit, because no one knows when a
	// refused request could pass:
	//
	//	RateLimit-Policy: "slots";q=10;qu="concurrent-requests"
	IETF HeaderStyle = 1 << iota
	// Legacy is X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset for the tightest limit. Reset is a time
	// in seconds since 1970, rounded up. It is when a bucket is full or a window ends, as in IETF, or, after a refusal,
	// when the request can pass.
	Legacy
	// Draft06 is RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset for the tightest limit, as in the draft up to
	// version 6. Reset is the same time as in Legacy, but in seconds from now.
	Draft06

	// NoHeaders sends none of these headers.
	NoHeaders HeaderStyle = 0

	allStyles = IETF | Legacy | Draft06
)

// Fields returns the names of the header fields that answers have in addition to Retry-After. The names have their
// usual spelling. Use them for Access-Control-Expose-Headers, for example.
func (s HeaderStyle) Fields() (names []string) {
	for _, style := range []struct {
		HeaderStyle
		fields []string
	}{
		{IETF, []string{"RateLimit", "RateLimit-Policy"}},
		{Legacy, []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}},
		{Draft06, []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}},
	} {
		if s&style.HeaderStyle != 0 {
			names = append(names, style.fields...)
		}
	}
	return names
}

// The names are in the form of [http.CanonicalHeaderKey], because [http.Header.Get] and proxies look for this form.
const (
	headerPolicy      = "Ratelimit-Policy"
	headerRateLimit   = "Ratelimit"
	headerXLimit      = "X-Ratelimit-Limit"
	headerXRemaining  = "X-Ratelimit-Remaining"
	headerXReset      = "X-Ratelimit-Reset"
	header06Limit     = "Ratelimit-Limit"
	header06Remaining = "Ratelimit-Remaining"
	header06Reset     = "Ratelimit-Reset"
	headerRetryAfter  = "Retry-After"
)

// WriteHeaders sets the headers of an answer, whether the request was refused or not. It replaces headers of the same
// name that outer middlewares have set.
func (res *Result) WriteHeaders(h http.Header) {
	if res.m == nil {
		return
	}
	styles := res.m.styles
	fields := fieldWriter{h: h, capacity: 3 * bits.OnesCount8(uint8(styles|IETF))}
	if styles&IETF != 0 {
		if policies := res.policies(); policies != "" {
			fields.set(headerPolicy, policies)
		}
	}
	if c, ok := res.Tightest(); ok && styles != NoHeaders && !c.InFlight() {
		if styles&IETF != 0 {
			fields.set(headerRateLimit, res.rateLimit(c))
		}
		var limit, remaining string
		if styles&(Legacy|Draft06) != 0 {
			limit, remaining = integer(c.Decision.Limit), integer(c.Decision.Remaining)
		}
		if styles&Legacy != 0 {
			fields.set(headerXLimit, limit)
			fields.set(headerXRemaining, remaining)
			fields.set(headerXReset, strconv.FormatInt(res.resetAt(c), 10))
		}
		if styles&Draft06 != 0 {
			fields.set(header06Limit, limit)
			fields.set(header06Remaining, remaining)
			fields.set(header06Reset, strconv.FormatInt(seconds(reset(c)), 10))
		}
	}
	if retry := res.retrySeconds(); retry > 0 {
		fields.set(headerRetryAfter, strconv.FormatInt(retry, 10))
	}
}

// A fieldWriter sets headers with canonical names. It stores all values in one array. [http.Header.Set] would allocate
// an array for each value.
type fieldWriter struct {
	h        http.Header
	capacity int // of values; no style needs more than three, and IETF leaves one for Retry-After
	values   []string
}

func (f *fieldWriter) set(name, value string) {
	if cap(f.values) == 0 {
		f.values = make([]string, 0, f.capacity)
	}
	f.values = append(f.values, value)
	last := len(f.values)
	f.h[name] = f.values[last-1 : last : last] // the capacity is the length, so an append makes a copy
}

// policies returns the value of RateLimit-Policy.
func (res *Result) policies() string {
	var first string
	var list []byte
	for i := range res.Len() {
		c := res.Check(i)
		if c.Shadow() {
			continue
		}
		item := policyItem(c, res.texts(c))
		if item == "" {
			continue
		}
		if res.m.secret != nil {
			item += res.partition(c)
		}
		switch {
		case first == "":
			first = item
		case list == nil:
			list = append(append(append(make([]byte, 0, 256), first...), ", "...), item...)
		default:
			list = append(append(list, ", "...), item...)
		}
	}
	if list != nil {
		return string(list)
	}
	return first
}

// policyItem returns the item of RateLimit-Policy for a check. If the check does not limit the request, it returns "".
// An item is formatted again only if its numbers have changed.
func policyItem(c *Check, t *headerTexts) string {
	if c.Unlimited() {
		return ""
	}
	p := c.Policy()
	quota, window, unit := p.Limit(), p.Window(), t.unit
	if c.InFlight() { // Window is the longest time for which a request counts
		window = 0
		if unit == "" {
			unit = `;qu="concurrent-requests"`
		}
	}
	if c.Limit().Source != nil && c.Answered() {
		quota = c.Decision.Limit
	}
	cached := &t.policies[min(uint(c.Tier), uint(len(t.policies)-1))]
	r := cached.Load()
	if r != nil && r.quota == quota && r.window == window {
		return r.text
	}
	b := append([]byte(t.quoted), ";q="...)
	b = appendInteger(b, quota)
	b = append(b, unit...)
	if window > 0 {
		b = appendInteger(append(b, ";w="...), uint64(seconds(window)))
	}
	r = &renderedItem{quota, window, string(b)}
	cached.Store(r)
	return r.text
}

// rateLimit returns the value of RateLimit.
func (res *Result) rateLimit(c *Check) string {
	var buffer [128]byte
	b := append(append(buffer[:0], res.texts(c).quoted...), ";r="...)
	b = appendInteger(b, c.Decision.Remaining)
	b = appendInteger(append(b, ";t="...), uint64(seconds(effectiveReset(c))))
	if res.m.secret != nil {
		b = append(b, res.partition(c)...)
	}
	return string(b)
}

// effectiveReset returns the parameter t of RateLimit. A client that spreads the remaining r requests over t is neither
// refused nor slower than necessary. For a bucket, t is the time in which r tokens come back. If r is 0, t is the time
// until the next token. For a window, t is the time until the reset, because no tokens come back before.
func effectiveReset(c *Check) time.Duration {
	p := c.Policy()
	if !c.Decision.Allowed || p.Algorithm() != engine.AlgorithmTokenBucket || p.Limit() == 0 {
		return reset(c)
	}
	hi, lo := bits.Mul64(uint64(p.Window()), min(max(c.Decision.Remaining, 1), p.Limit()))
	quotient, remainder := bits.Div64(hi, lo, p.Limit())
	return min(time.Duration(quotient+min(remainder, 1)), reset(c))
}

// resetAt returns the time of the reset in seconds since 1970, rounded up.
func (res *Result) resetAt(c *Check) int64 {
	now, wait := res.m.now(), reset(c)
	at := now.Unix() + int64(wait/time.Second)
	return at + seconds(time.Duration(now.Nanosecond())+wait%time.Second)
}

// partition returns the parameter "pk" for the key of a check.
func (res *Result) partition(c *Check) string {
	mac := hmac.New(sha256.New, res.m.secret)
	mac.Write([]byte(res.texts(c).quoted))
	mac.Write([]byte(c.Text()))
	return ";pk=:" + base64.StdEncoding.EncodeToString(mac.Sum(nil)[:8]) + ":"
}

// seconds returns a time in seconds, rounded up.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// maxInteger is the largest integer of RFC 9651.
const maxInteger = 999_999_999_999_999

// integer formats a number as an integer of RFC 9651. A number above maxInteger becomes maxInteger. No client can use
// up such a limit.
func integer(n uint64) string { return strconv.FormatUint(min(n, maxInteger), 10) }

func appendInteger(b []byte, n uint64) []byte { return strconv.AppendUint(b, min(n, maxInteger), 10) }
