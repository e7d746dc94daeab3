package serve

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/weir-go/weir/engine"
)

// proxy passes admitted requests to the upstream.
type proxy struct {
	reverse httputil.ReverseProxy
	counts  *counters
	log     *slog.Logger
}

func newProxy(upstream *Upstream, counts *counters, log *slog.Logger) *proxy {
	p := &proxy{counts: counts, log: log}
	p.reverse = httputil.ReverseProxy{
		// Rewrite, unlike Director, first drops the Forwarded headers that the
		// client sent: the upstream sees the address of the socket.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&upstream.url)
			r.SetXForwarded()
		},
		Transport:      newTransport(),
		ModifyResponse: p.watch,
		ErrorHandler:   p.badGateway,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug), // watch logs it better
	}
	return p
}

// newTransport returns a transport for a single upstream. Its limits are there
// so that an upstream that hangs cannot hold a client forever; how long an
// answer may take once it has begun is for the upstream to say.
func newTransport() *http.Transport {
	return &http.Transport{
		// An upstream that is named is meant: no proxy of the environment between.
		Proxy:                 nil,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 60 * time.Second,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConns:          256,
		MaxIdleConnsPerHost:   256, // all of them: the default of 2 is for many hosts
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // bodies pass as the two ends agree
	}
}

// serve is an [admitted].
func (p *proxy) serve(w http.ResponseWriter, r *http.Request, _ client, _ engine.Decision) {
	p.reverse.ServeHTTP(w, r)
}

// close drops the idle connections to the upstream.
func (p *proxy) close() { p.reverse.Transport.(*http.Transport).CloseIdleConnections() }

// badGateway answers for an upstream that did not. The details are logged and
// not sent: they name machines that are not the client's business.
func (p *proxy) badGateway(w http.ResponseWriter, r *http.Request, err error) {
	p.failed(r, err)
	writeError(w, http.StatusBadGateway, errorBody{Error: "The upstream server did not answer"})
}

// failed counts and logs a failure of the upstream. A client that went away in
// the meantime is not one.
func (p *proxy) failed(r *http.Request, err error) {
	if r.Context().Err() != nil {
		return
	}
	p.counts.upstreamFailures.Add(1)
	p.log.Error("upstream failed", "method", r.Method, "path", r.URL.Path, "err", err)
}

// watch notices an upstream that breaks off in the middle of its answer, which
// badGateway is not told about because the status is sent by then.
func (p *proxy) watch(response *http.Response) error {
	if response.StatusCode == http.StatusSwitchingProtocols {
		return nil // not a body but a connection, which either side may end
	}
	response.Body = &watchedBody{ReadCloser: response.Body, proxy: p, request: response.Request}
	return nil
}

type watchedBody struct {
	io.ReadCloser
	proxy   *proxy
	request *http.Request
}

func (b *watchedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		b.proxy.failed(b.request, err)
	}
	return n, err
}
