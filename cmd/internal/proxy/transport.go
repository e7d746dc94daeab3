package proxy

import (
	"context"
	"net"
	"net/http"
	"time"
)

// A transportKey identifies connections. All upstreams with an equal transportKey share them.
type transportKey struct {
	scheme, host, socket            string
	connectTimeout, responseTimeout time.Duration
	h2c                             bool
}

func transportOf(u *Upstream, t Target) transportKey {
	key := transportKey{socket: t.Socket, connectTimeout: u.ConnectTimeout, responseTimeout: u.ResponseTimeout, h2c: u.H2C}
	if t.URL != nil {
		key.scheme, key.host = t.URL.Scheme, t.URL.Host
	}
	return key
}

// newTransport returns the connections to an upstream. With its timeouts, an upstream that hangs cannot block a client
// forever. An answer that has begun may take any time.
func (k transportKey) newTransport(conns *connCount) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!k.h2c)
	protocols.SetHTTP2(!k.h2c)
	protocols.SetUnencryptedHTTP2(k.h2c)
	t := &http.Transport{
		// The proxy connects directly, even if HTTP_PROXY is set.
		Proxy: nil,

		TLSHandshakeTimeout:   k.connectTimeout,
		ResponseHeaderTimeout: k.responseTimeout,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConns:          256,
		MaxIdleConnsPerHost:   256, // all idle connections; the default of 2 is meant for many hosts
		Protocols:             protocols,
		DisableCompression:    true, // the client and the upstream decide about compression
	}
	dialer := &net.Dialer{Timeout: k.connectTimeout, KeepAlive: 30 * time.Second}
	dial := dialer.DialContext
	if k.socket != "" {
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", k.socket)
		}
	}
	t.DialContext = conns.dialer(dial, t.CloseIdleConnections)
	return t
}
