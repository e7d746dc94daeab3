package serve

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"sync/atomic"

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
	if r.Body != nil && len(b.members) > 1 {
		r.Body = &unreadBody{ReadCloser: r.Body}
	}
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
		m.unreached(err)
		b.retries.Inc()
		m.log.Warn("upstream failed: the request goes to another server", "err", err)
		m, r = next, r.Clone(r.Context()) // the transport may still hold the one before
		*r.URL = target
	}
}

// mayRetry reports whether a request that failed can go to another server: no connection to this one could be made, so
// that nothing has been sent. A request with an Idempotency-Key is an exception, unless its method says that to do it
// twice is to do it once: the transport sends it again by itself if the server closes a kept connection, and the error
// may be that of the second attempt.
func mayRetry(r *http.Request, err error) bool {
	if r.Context().Err() != nil || !isUnconnected(err) {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.Header["Idempotency-Key"] == nil && r.Header["X-Idempotency-Key"] == nil
}

// An unreadBody is a body that stays open until it has been read from: the transport closes it also where it could make
// no connection, and another server is to get it. [httputil.ReverseProxy] closes what it wraps in the end.
type unreadBody struct {
	io.ReadCloser
	begun atomic.Bool
}

func (b *unreadBody) Read(into []byte) (int, error) {
	b.begun.Store(true)
	return b.ReadCloser.Read(into)
}

// Close ends a read that waits for the client.
func (b *unreadBody) Close() error {
	if !b.begun.Load() {
		return nil
	}
	return b.ReadCloser.Close()
}

// isUnconnected reports whether an error says that no connection to a server could be made. No client can bring one
// about. (It can bring about other errors, by a body that is too large for the server, or by the wish for a WebSocket.)
func isUnconnected(err error) bool {
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &certificate)
}
