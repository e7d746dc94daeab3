package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync/atomic"
)

// A balancer is the [http.RoundTripper] of a proxy. It chooses a server for each request. If it cannot connect to this
// server, it chooses another. No server has then received any part of the request, so no request is executed twice.
type balancer struct {
	*pool
	h2c bool // the servers support only HTTP/2
}

// RoundTrip implements [http.RoundTripper]. The context of the request must have an Exchange. RoundTrip changes only
// the header of the client's request.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	x, target, host := exchangeOf(r), *r.URL, r.Host
	x.resend = resend{upstreams: b.upstreams, empty: r.Body == nil || r.Body == http.NoBody}
	if !x.resend.empty && len(b.members) > 1 {
		r.Body = &unreadBody{ReadCloser: r.Body}
	}
	var tried []*member
	for m := b.acquire(nil); ; {
		x.server = m
		(&httputil.ProxyRequest{Out: r}).SetURL(m.URL)
		r.Host = host
		x.resend.restrict(r, b.isHTTP1(m))
		response, err := m.transport.RoundTrip(r)
		if err == nil {
			if major := int32(response.ProtoMajor); m.protocol.Load() != major {
				m.protocol.Store(major)
			}
			return response, nil
		}
		next, message := b.next(r, &x.resend, m, err, &tried)
		if next == nil {
			return nil, err
		}
		m.release()
		b.upstreams.retries.Inc()
		m.log.Warn(message, "err", err)
		m, r = next, r.Clone(r.Context()) // the transport may still use the previous request
		*r.URL = target
	}
}

// isHTTP1 reports whether requests to the server m use HTTP/1. With TLS, this is unknown until the server has answered.
func (b *balancer) isHTTP1(m *member) bool {
	return !b.h2c && (m.URL.Scheme == "http" || m.protocol.Load() == 1)
}

// The method next returns the server to try after a request has failed at the server m, and a message for the log. It
// returns nil if the request is not sent again.
func (b *balancer) next(r *http.Request, s *resend, m *member, err error, tried *[]*member) (next *member, message string) {
	switch {
	case r.Context().Err() != nil:
		return nil, ""
	case isUnconnected(err):
		*tried = append(*tried, m)
		if next = b.acquire(*tried); next != nil {
			m.markUnreachable(err)
		}
		return next, "upstream failed: the request goes to another server"
	case s.empty && !s.refused && isUnprocessed(err):
		s.refused = true
		if next = b.acquire(append(slices.Clone(*tried), m)); next == nil {
			next = m.acquire()
		}
		return next, "upstream refused a request without processing it: it is sent again"
	}
	return nil, ""
}

// An unreadBody ignores Close before the first read. The transport closes a body even if it could not connect, and then
// another server needs the body. [httputil.ReverseProxy] closes the wrapped body at the end of the request.
type unreadBody struct {
	io.ReadCloser
	started atomic.Bool
}

func (b *unreadBody) Read(p []byte) (int, error) {
	b.started.Store(true)
	return b.ReadCloser.Read(p)
}

// Close closes the body if it has been read from. Close also ends a read that waits for the client.
func (b *unreadBody) Close() error {
	if !b.started.Load() {
		return nil
	}
	return b.ReadCloser.Close()
}

// isUnconnected reports whether err says that no connection to a server could be made. No request of a client can cause
// such an error. A client can cause other errors, for example with a body that is too large for the server.
func isUnconnected(err error) bool {
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &certificate)
}
