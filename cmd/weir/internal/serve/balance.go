package serve

import (
	"errors"
	"net"
	"net/http"
	"net/http/httputil"

	"github.com/prometheus/client_golang/prometheus"
)

// A balancer is the [http.RoundTripper] of a proxy. It chooses a server for each request, and another one if no
// connection to that can be made: nothing has been sent then, so that no server does anything twice.
type balancer struct {
	*pool
	retries prometheus.Counter
}

// RoundTrip implements [http.RoundTripper]. The request is one of a client ([exchangeOf]), and as the client sent it
// but for its header.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	x, target, host := exchangeOf(r), *r.URL, r.Host
	var tried []*member
	for m := b.acquire(nil); ; {
		x.server = m
		(&httputil.ProxyRequest{Out: r}).SetURL(m.URL)
		r.Host = host
		response, err := m.transport.RoundTrip(r)
		if err == nil || len(b.members) == 1 || !mayRetry(r, err) {
			return response, err
		}
		tried = append(tried, m)
		next := b.acquire(tried)
		if next == nil {
			return nil, err
		}
		m.release()
		m.failed(err)
		b.retries.Inc()
		m.log.Warn("upstream failed: the request goes to another server", "err", err)
		m, r = next, r.Clone(r.Context()) // the transport may still hold the one before
		*r.URL = target
	}
}

// mayRetry reports whether a request that failed can go to another server: nothing of it has been sent, it has no body,
// which would be closed by now, and its method says that to do it twice is to do it once.
func mayRetry(r *http.Request, err error) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
	default:
		return false
	}
	var op *net.OpError
	return r.Body == nil && r.Context().Err() == nil && errors.As(err, &op) && op.Op == "dial"
}
