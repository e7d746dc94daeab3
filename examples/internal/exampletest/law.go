package exampletest

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A Law is a limit that an example must enforce: a burst, plus one request per interval.
type Law struct {
	Burst int
	Every time.Duration
}

// Holds checks that at least the burst is admitted and, beyond the burst, at most the tokens that come back during the
// test.
func (l Law) Holds(t *testing.T, admitted func(i int) bool) {
	t.Helper()
	start, passed, n := time.Now(), 0, 0
	for n < 2*l.Burst+3 || passed == n && n < 1000 {
		if admitted(n) {
			passed++
		}
		n++
	}
	assert.Less(t, passed, n, "none was refused")
	l.check(t, passed, time.Since(start))
}

// check checks how many requests of one key were admitted within a duration.
func (l Law) check(t *testing.T, passed int, took time.Duration) {
	t.Helper()
	assert.GreaterOrEqual(t, passed, l.Burst)
	assert.LessOrEqual(t, passed, l.Burst+int(took/l.Every), "in %v", took)
}

// A Request is a request that an example limits for each client.
type Request struct {
	Law
	Method, Path, Body string
	Header             []string
	Limit              string // name of the limit
	Status             int    // status of an admitted request
	Bare               []int  // statuses of answers that have no RateLimit fields
}

// Clients starts the example without and with a trusted proxy, and checks that a client has only one bucket, whatever
// its X-Forwarded-For.
func (r Request) Clients(t *testing.T) {
	t.Run("direct", func(t *testing.T) { r.Forged(t, Start(t)) })
	t.Run("behind a proxy", func(t *testing.T) {
		url := Start(t, "-trust", "127.0.0.1")
		for name, header := range map[string]func(i int) []string{
			"plain":           func(int) []string { return []string{"X-Forwarded-For", "203.0.113.1"} },
			"forged, a list":  func(i int) []string { return []string{"X-Forwarded-For", fmt.Sprintf("192.0.2.%d, 203.0.113.2", i)} },
			"forged, garbage": func(i int) []string { return []string{"X-Forwarded-For", fmt.Sprintf("a%d,,203.0.113.3", i)} },
			"forged, a line": func(i int) []string {
				return []string{"X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i), "X-Forwarded-For", "203.0.113.4"}
			},
			"forged, other fields": func(i int) []string {
				other := fmt.Sprintf("192.0.2.%d", i)
				return []string{"X-Forwarded-For", "203.0.113.5", "X-Real-Ip", other, "Forwarded", "for=" + other,
					"True-Client-Ip", other, "Cf-Connecting-Ip", other}
			},
			"IPv6 addresses of one customer": func(i int) []string {
				return []string{"X-Forwarded-For", fmt.Sprintf("2001:db8::%x", i)}
			},
		} {
			t.Run(name, func(t *testing.T) {
				r.Holds(t, func(i int) bool { return r.passes(t, url, header(i)...) })
			})
		}
	})
}

// Forged checks that a client has only one bucket, even if it sends a different X-Forwarded-For with each request to
// url.
func (r Request) Forged(t *testing.T, url string) {
	t.Helper()
	r.Holds(t, func(i int) bool {
		forged := fmt.Sprintf("203.0.113.%d", i%256)
		return r.passes(t, url, "X-Forwarded-For", forged, "X-Real-IP", forged, "Forwarded", "for="+forged)
	})
}

// passes makes the request, reports whether it is admitted, and checks the RateLimit fields.
func (r Request) passes(t *testing.T, url string, header ...string) bool {
	t.Helper()
	answer := Do(t, r.Method, url+r.Path, r.Body, append(r.Header, header...)...)
	if !slices.Contains(r.Bare, answer.Status) {
		r.fields(t, answer)
	}
	if answer.Status == r.Status {
		assert.Empty(t, answer.Header.Get("Retry-After"))
		return true
	}
	require.Equal(t, 429, answer.Status, answer.Body)
	wait, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, wait, 1)
	assert.LessOrEqual(t, wait, int(r.Every/time.Second))
	return false
}

// fields checks the RateLimit fields of an answer.
func (r Request) fields(t *testing.T, answer Answer) {
	t.Helper()
	limit := strconv.Quote(r.Limit)
	assert.Regexp(t, `^`+limit+`;r=\d+;t=\d+$`, answer.Header.Get("RateLimit"))
	assert.Contains(t, answer.Header.Get("RateLimit-Policy"), fmt.Sprintf("%s;q=%d;w=", limit, r.Burst))
}
