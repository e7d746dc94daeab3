package serve

import (
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSevenQuickRequests(t *testing.T) {
	s := start(t, "ip", "")
	assert.Equal(t, []int{200, 200, 200, 200, 200, 429, 429}, s.statuses(7))
	assert.Equal(t, answer{429, "1", "application/json", `{"error":"Too many requests","retryAfter":1}` + "\n"}, s.get("/"))

	s.clock.advance(999 * time.Millisecond)
	assert.Equal(t, []int{429}, s.statuses(1), "a millisecond early")
	s.clock.advance(time.Millisecond)
	assert.Equal(t, []int{200, 429}, s.statuses(2), "one token came back")

	s.stop()
	assert.Contains(t, s.log.String(), "msg=stopped requests=11 allowed=6 refused=5 upstream_failures=0\n")
}

func TestEchoShowsWhatTheLimiterSaw(t *testing.T) {
	s := start(t, "ip", "")
	s.get("/")
	assert.Equal(t, answer{200, "", "text/plain; charset=utf-8", `admitted by weir

method     GET
path       /a/b?c=d
client     ip 127.0.0.1
remaining  3 of 5 tokens
`}, s.get("/a/b?c=d"))
}

func TestHeaderKeysHaveTheirOwnBuckets(t *testing.T) {
	s := start(t, "header:x-api-key", "")
	spent := []int{200, 200, 200, 200, 200, 429}
	assert.Equal(t, spent, s.statuses(6, "X-Api-Key: alice"))
	assert.Equal(t, spent, s.statuses(6, "X-API-KEY: bob"))
	assert.Contains(t, s.get("/", "X-Api-Key: carol").body, "client     header X-Api-Key: carol\n")

	// The address is a client of its own, whatever value a header takes.
	assert.Equal(t, spent, s.statuses(6, "X-Api-Key: 127.0.0.1"))
	assert.Contains(t, s.get("/").body, "client     ip 127.0.0.1\nremaining  4 of 5 tokens")
	assert.Equal(t, []int{200, 200, 200, 200, 429}, s.statuses(5, "X-Api-Key: "), "an empty header is none")
	assert.Equal(t, []int{429}, s.statuses(1, "Other: alice"), "no header: the address")
}

func TestAForwardedHeaderBuysNothing(t *testing.T) {
	s := start(t, "ip", "")
	s.statuses(5)
	for _, h := range []string{"X-Forwarded-For: 203.0.113.1", "Forwarded: for=203.0.113.1", "X-Real-IP: 203.0.113.1"} {
		assert.Equal(t, []int{429}, s.statuses(1, h), h)
	}
}

func TestGateRefusesWhomItCannotTell(t *testing.T) {
	s := start(t, "ip", "")
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "@"
	s.http.Handler.ServeHTTP(w, r)
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.JSONEq(t, `{"error":"Cannot tell who is asking"}`, w.Body.String())
	assert.Contains(t, s.log.String(), `address \"@\" is not IP:port`)
}

func TestWholeSecondsRoundsUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		0:                                1,
		1:                                1,
		time.Second:                      1,
		time.Second + 1:                  2,
		90*time.Second - time.Nanosecond: 90,
		math.MaxInt64:                    9223372037,
	} {
		assert.Equal(t, want, wholeSeconds(d), d)
	}
}
