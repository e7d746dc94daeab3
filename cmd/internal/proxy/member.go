package proxy

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type member struct {
	Target
	transport http.RoundTripper
	seconds   prometheus.Observer // the time until the header of an answer
	pool      *pool
	log       *slog.Logger

	protocol atomic.Int32 // the major version of HTTP of its last answer; 0 before the first
	inFlight atomic.Int64
	failed   atomic.Uint64 // requests that it did not serve
	isSick   atomic.Bool   // according to health checks
	// After a failed connection, retryAt is the time, in nanoseconds, from which a request may try the server again.
	// Each try moves it to a later time. It is 0 if the server can be reached.
	retryAt atomic.Int64
}

// acquire counts a request, and returns m. m may be nil.
func (m *member) acquire() *member {
	if m != nil {
		m.inFlight.Add(1)
	}
	return m
}

func (m *member) release() { m.inFlight.Add(-1) }

// retryAfter is how long other servers get the requests after a connection to a server has failed. Then one request
// tries the server again. So a restarted server is used within a second, and a server that is down delays one request
// per second.
const retryAfter = time.Second

func (m *member) isUp() bool { return !m.isSick.Load() && m.retryAt.Load() == 0 }

// isEligible reports whether requests may go to the server: it is up, or the time for another try has come.
func (m *member) isEligible(now time.Time) bool {
	return !m.isSick.Load() && m.retryAt.Load() <= now.UnixNano()
}

// mayTry reports whether a request may be sent to this server. Once the time retryAt has come, usually only one request
// per retryAfter may be sent.
func (m *member) mayTry(now time.Time) bool {
	at := m.retryAt.Load()
	return at == 0 || at > now.UnixNano() || // no server was eligible, or another request has just moved retryAt
		m.retryAt.CompareAndSwap(at, now.Add(retryAfter).UnixNano())
}

func (m *member) markUnreachable(err error) {
	if m.retryAt.Swap(m.pool.upstreams.config.Now().Add(retryAfter).UnixNano()) == 0 {
		m.log.Warn("upstream down: no connection can be made", "err", err)
	}
}

func (m *member) markReachable() {
	if m.retryAt.Load() != 0 && m.retryAt.Swap(0) != 0 {
		m.log.Info("upstream up: it answers again")
	}
}
