package serve

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// A member is a server of a pool.
type member struct {
	config.Target
	name      string // in the log and in metrics
	transport http.RoundTripper
	seconds   prometheus.Observer // until the header of an answer
	pool      *pool
	log       *slog.Logger

	inFlight atomic.Int64
	sick     atomic.Bool // by checks
	// failures are those in a row of requests. After some of them the server is left out until a time, in nanoseconds:
	// 0 for a server that is not. Then one request tries it.
	failures atomic.Int64
	until    atomic.Int64
}

// acquire counts a request. A nil member stays nil.
func (m *member) acquire() *member {
	if m != nil {
		m.inFlight.Add(1)
	}
	return m
}

func (m *member) release() { m.inFlight.Add(-1) }

// isUp reports whether requests are sent to it as to any other.
func (m *member) isUp() bool { return !m.sick.Load() && m.until.Load() == 0 }

// isEligible reports whether a request may be sent to it: it is up, or the time for another try has come.
func (m *member) isEligible(now time.Time) bool {
	return !m.sick.Load() && m.until.Load() <= now.UnixNano()
}

// mayTry reports whether a request that was given the server may go there. To one whose time has come one request goes,
// and the next when the time has come again.
func (m *member) mayTry(now time.Time) bool {
	until := m.until.Load()
	return until == 0 || until > now.UnixNano() || // all are down
		m.until.CompareAndSwap(until, now.Add(m.pool.settings.EjectFor).UnixNano())
}

// failed notes that the server did not serve a request.
func (m *member) failed(err error) {
	after := int64(m.pool.settings.EjectAfter)
	if n := m.failures.Add(1); after == 0 || n < after || len(m.pool.members) == 1 {
		return
	}
	if m.until.Swap(m.pool.now().Add(m.pool.settings.EjectFor).UnixNano()) == 0 {
		m.log.Warn("upstream down: requests failed", "failures", after, "err", err)
	}
}

// served notes that the server answered a request.
func (m *member) served() {
	if m.failures.Load() != 0 {
		m.failures.Store(0)
	}
	if m.until.Load() != 0 && m.until.Swap(0) != 0 {
		m.log.Info("upstream up: it answers requests")
	}
}
