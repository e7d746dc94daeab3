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

// A HeaderStyle is a set of headers that tell a client how much it has left. Styles are combined
// by |.
type HeaderStyle uint8

const (
	// IETF is the pair of draft-ietf-httpapi-ratelimit-headers, versions 8 to 10, structured fields
	// (RFC 9651):
	//
	//	RateLimit-Policy: "default";q=100;w=60
	//	RateLimit: "default";r=50;t=30
	//
	// RateLimit-Policy lists every limit that applies and is in force: q is all that a key can
	// have at once, w the seconds in which it comes back. RateLimit shows the tightest: r is
	// what is left, t the seconds over which a client may spread it. Of a bucket those are the seconds in which as much
	// comes back, or until it is full; of a window those until all of it is back; of a refusal those until the request
	// can pass. A limit of requests in flight stands in RateLimit-Policy alone, as
	//
	//	RateLimit-Policy: "slots";q=10;qu="concurrent-requests"
	//
	// since it has no window, and it is not known when it lets the request pass.
	IETF HeaderStyle = 1 << iota
	// Legacy is X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset of the tightest
	// limit. Reset is when all of it is back, or of a refusal, when the request can pass, in seconds since 1970,
	// rounded up.
	Legacy
	// Draft06 is RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset of the tightest limit, as
	// in the draft up to its 6th version. Reset is as that of Legacy, in seconds from now on.
	Draft06

	// NoHeaders is none of them.
	NoHeaders HeaderStyle = 0

	allStyles = IETF | Legacy | Draft06
)

// Fields returns the names of the fields that answers carry beside Retry-After, as they are usually written: for
// Access-Control-Expose-Headers, for example.
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

// The names are in the form of [http.CanonicalHeaderKey], because that is how [http.Header.Get] and
// proxies look for them. HTTP/1 shows it as it is, and does not mind the case; HTTP/2 has
// lower case only.
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

// WriteHeaders sets the headers of the answer, refused or not. It replaces headers of the same name, such as those of
// an outer middleware.
func (res *Result) WriteHeaders(h http.Header) {
	if res.m == nil {
		return
	}
	styles := res.m.styles
	fields := fieldWriter{h: h, room: 3 * bits.OnesCount8(uint8(styles|IETF))}
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
	if retry := res.retry(); retry > 0 {
		fields.set(headerRetryAfter, strconv.FormatInt(retry, 10))
	}
}

// A fieldWriter sets headers whose names are in canonical form. All values are in one
// array, where [http.Header.Set] would allocate one for each.
type fieldWriter struct {
	h      http.Header
	room   int // for values; no style has more than three headers, and IETF leaves one for Retry-After
	values []string
}

func (f *fieldWriter) set(name, value string) {
	if cap(f.values) == 0 {
		f.values = make([]string, 0, f.room)
	}
	f.values = append(f.values, value)
	last := len(f.values)
	f.h[name] = f.values[last-1 : last : last] // full: an append makes a copy
}

// policies returns the value of RateLimit-Policy.
func (res *Result) policies() string {
	var only string
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
		case only == "":
			only = item
		case list == nil:
			list = append(append(append(make([]byte, 0, 256), only...), ", "...), item...)
		default:
			list = append(append(list, ", "...), item...)
		}
	}
	if list != nil {
		return string(list)
	}
	return only
}

// policyItem returns the check's item of RateLimit-Policy. It is formatted again only when its numbers have changed. A
// request without a limit has none.
func policyItem(c *Check, t *texts) string {
	if c.Unlimited() {
		return ""
	}
	p := c.Policy()
	quota, window, unit := p.Limit(), p.Window(), t.unit
	if c.InFlight() { // its window is how long a request counts at most
		window = 0
		if unit == "" {
			unit = `;qu="concurrent-requests"`
		}
	}
	if c.Limit().Source != nil && c.Answered() {
		quota = c.Decision.Limit
	}
	known := &t.policies[min(uint(c.Tier), uint(len(t.policies)-1))]
	r := known.Load()
	if r != nil && r.quota == quota && r.window == window {
		return r.text
	}
	b := append([]byte(t.quoted), ";q="...)
	b = appendInteger(b, quota)
	b = append(b, unit...)
	if window > 0 {
		b = appendInteger(append(b, ";w="...), uint64(seconds(window)))
	}
	r = &rendered{quota, window, string(b)}
	known.Store(r)
	return r.text
}

// rateLimit returns the value of RateLimit.
func (res *Result) rateLimit(c *Check) string {
	var room [128]byte
	b := append(append(room[:0], res.texts(c).quoted...), ";r="...)
	b = appendInteger(b, c.Decision.Remaining)
	b = appendInteger(append(b, ";t="...), uint64(seconds(effective(c))))
	if res.m.secret != nil {
		b = append(b, res.partition(c)...)
	}
	return string(b)
}

// effective returns the time for which r is meant: a client that spreads its requests so is neither refused nor slower
// than it may be. Tokens come back all the time, so of a bucket it is the time in which r of them do, or the next one.
// All of a window's are there until reset.
func effective(c *Check) time.Duration {
	p := c.Policy()
	if !c.Decision.Allowed || p.Algorithm() != engine.AlgorithmTokenBucket || p.Limit() == 0 {
		return reset(c)
	}
	hi, lo := bits.Mul64(uint64(p.Window()), min(max(c.Decision.Remaining, 1), p.Limit()))
	back, rest := bits.Div64(hi, lo, p.Limit())
	return min(time.Duration(back+min(rest, 1)), reset(c))
}

// resetAt returns the end of reset as seconds since 1970, rounded up.
func (res *Result) resetAt(c *Check) int64 {
	now, wait := res.m.now(), reset(c)
	at := now.Unix() + int64(wait/time.Second)
	return at + seconds(time.Duration(now.Nanosecond())+wait%time.Second)
}

// partition returns the "pk" parameter of a check.
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

// integer formats a number as an integer of RFC 9651. No client can use up a limit that is larger than that.
func integer(n uint64) string { return strconv.FormatUint(min(n, maxInteger), 10) }

func appendInteger(b []byte, n uint64) []byte { return strconv.AppendUint(b, min(n, maxInteger), 10) }
