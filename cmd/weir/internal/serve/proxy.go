package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/config"
	"github.com/weir-go/weir/httplimit"
)

// proxy passes admitted requests to an upstream.
type proxy struct {
	reverse httputil.ReverseProxy
	body    config.Body // of our own answers
	grpc    bool        // the upstream may speak gRPC: it has HTTP/2
	h2c     bool        // it has nothing else
	traffic *traffic
	server  context.Context // that ends requests whose clients have gone; nil where these end at once
	longest time.Duration   // that these may take then
}

func newProxy(u *config.Upstream, servers *pool, f *config.File, ip *httplimit.ClientIP, traffic *traffic,
	log *slog.Logger) *proxy {
	p := &proxy{
		body: f.Response.Body, traffic: traffic, h2c: u.H2C,
		grpc: u.H2C || slices.ContainsFunc(u.Targets, func(t config.Target) bool { return t.URL.Scheme == "https" }),
	}
	forward := newForwarder(u, f, ip)
	p.reverse = httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			// As the rules saw it: ReverseProxy has left out what it cannot read, such as all pairs with a semicolon.
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			r.Out.URL.Opaque = "" // it would be sent in place of the path that the rules saw
			if !u.KeepHost {
				r.Out.Host = "" // that of the URL
			}
			forward.set(r)
		},
		Transport:      &balancer{servers, traffic.retries},
		BufferPool:     answerBuffers,
		ModifyResponse: p.answered,
		ErrorHandler:   p.unanswered,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug), // watchedBody logs it better
	}
	return p
}

// ServeHTTP implements [http.Handler].
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// weir's fields are kept aside until the answer comes: a 1xx of the upstream would clear them.
	x := exchangeOf(r)
	x.kept.take(w.Header())
	x.deadline, x.passed = grpcDeadline(r), time.Now()
	stripUpgrade(r, p.h2c)
	if p.mayBeSilent(r) {
		x.client.pace = nil
	}
	defer func() {
		if x.server != nil {
			x.server.release()
		}
	}()
	if p.server != nil {
		var end func()
		r, end = x.delayAbort(r, p.server, p.longest)
		defer end()
	}
	p.reverse.ServeHTTP(w, r)
	x.whole = true // an answer that breaks off ends with a panic
}

// mayBeSilent reports whether the body of a request has no least rate: the stream of a gRPC call may be silent for
// hours, where the upstream can have any.
func (p *proxy) mayBeSilent(r *http.Request) bool { return p.grpc && httplimit.IsGRPC(r) }

// answered looks at the head of an answer.
func (p *proxy) answered(response *http.Response) error {
	// These fields replace the upstream's. Two lines of RateLimit would be one list, and a client could not tell
	// which limits are weir's.
	x := exchangeOf(response.Request)
	x.begun()
	x.server.seconds.Observe(time.Since(x.passed).Seconds())
	if response.StatusCode == http.StatusSwitchingProtocols {
		if err := x.openTunnel(response); err != nil {
			return err
		}
	}
	x.server.served()
	if x.tunnel != nil { // whose header ReverseProxy writes
		x.kept.giveTo(response.Header)
		return nil
	}
	handOver(response.Header, x.Header())
	x.kept.giveTo(x.Header())
	x.body = watchedBody{ReadCloser: response.Body, proxy: p, request: response.Request}
	response.Body = &x.body
	return nil
}

// handOver moves the header of an upstream's answer to that of the client's, which is empty. ReverseProxy would copy
// field by field, with an allocation for each. It reads the media type, to pass events on at once, so that of events
// stays.
func handOver(from, to http.Header) {
	for name, values := range from {
		if name == "Content-Type" && isEvents(values) {
			continue
		}
		to[name] = values
		delete(from, name)
	}
}

// isEvents reports whether a media type is that of a stream of events.
func isEvents(mediaType []string) bool {
	const events = "text/event-stream"
	return len(mediaType) > 0 && len(mediaType[0]) >= len(events) && strings.EqualFold(mediaType[0][:len(events)], events)
}

// unanswered answers when the upstream did not. The details are logged and not sent, because they name machines of the
// inner network.
func (p *proxy) unanswered(w http.ResponseWriter, r *http.Request, err error) {
	exchangeOf(r).kept.giveTo(w.Header())
	var slow net.Error
	if broken := exchangeOf(r).client.err(); broken != nil {
		// The client may be gone; then the answer is lost.
		w.Header().Set("Connection", "close")
		if errors.As(broken, &slow) && slow.Timeout() {
			fail(w, r, p.body, http.StatusRequestTimeout, "The body of the request did not come in time")
			return
		}
		fail(w, r, p.body, http.StatusBadRequest, "The body of the request breaks off")
		return
	}
	if exchangeOf(r).Context.Err() != nil || exchangeOf(r).isHijacked() {
		panic(http.ErrAbortHandler) // the client has gone: no answer is given, and none counted
	}
	if exchangeOf(r).expired() {
		exchangeOf(r).by = byWeir
		failGRPC(w, grpcDeadlineExceeded, "The deadline of the call is over")
		return
	}
	if isTooLarge(err) {
		fail(w, r, p.body, http.StatusRequestHeaderFieldsTooLarge, "The header of the request is larger than the upstream "+
			"server takes")
		return
	}
	if errors.As(err, &slow) && slow.Timeout() {
		p.failed(r, "timeout", err)
		fail(w, r, p.body, http.StatusGatewayTimeout, "The upstream server did not answer in time")
		return
	}
	p.failed(r, "unanswered", err)
	fail(w, r, p.body, http.StatusBadGateway, "The upstream server did not answer")
}

// isTooLarge reports whether an error says that the header of a request is larger than the upstream has said it takes,
// over HTTP/2. The upstream has not been asked and is not to blame: a client could otherwise have it left out. net/http
// does not export the error.
func isTooLarge(err error) bool {
	return strings.HasSuffix(err.Error(), "request header list larger than peer's advertised limit")
}

// failed counts and logs a failure of the upstream. An error after the client has gone, or after its deadline, is not
// one.
func (p *proxy) failed(r *http.Request, reason string, err error) {
	x := exchangeOf(r)
	if r.Context().Err() != nil || x.expired() {
		return
	}
	p.traffic.upstreamFailures.Add(1)
	p.traffic.failures.WithLabelValues(x.server.name, reason).Inc()
	x.server.log.Error("upstream failed", "method", r.Method, "path", r.URL.Path, "err", err)
	if errors.Is(err, errNoFile) || isUntaken(err) || isUnspoken(x.server, r, err) {
		return // it is not the server's fault
	}
	x.server.failed(err)
}

// isUnspoken reports whether an error may say that a server over TLS speaks HTTP/2 alone, and was sent the wish for a
// WebSocket, which goes over HTTP/1. A client could otherwise have it left out by such wishes.
func isUnspoken(m *member, r *http.Request, err error) bool {
	var network net.Error
	var op *net.OpError
	return m.URL.Scheme == "https" && upgradeOf(r.Header) != "" && !errors.Is(err, errUnasked) &&
		!(errors.As(err, &network) && network.Timeout()) && !(errors.As(err, &op) && op.Op == "dial")
}

// isUntaken reports whether an error says that a server has closed the connection while it was written to: it may have
// answered before it had the whole body, and weir has lost that. A client could otherwise have it left out by bodies
// that are too large for it. A server that is dead is noticed by what is read, or by the next connection.
func isUntaken(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "write" || op.Op == "readfrom") && !op.Timeout()
}

// A watchedBody notices an upstream that breaks off in the middle of its answer. ReverseProxy does not call unanswered
// then, because the status has been sent.
type watchedBody struct {
	io.ReadCloser
	proxy   *proxy
	request *http.Request
}

func (b *watchedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil && !errors.Is(err, io.EOF) && exchangeOf(b.request).client.err() == nil {
		b.proxy.failed(b.request, "broken", err)
	}
	return n, err
}
