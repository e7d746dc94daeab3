package serve

import (
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/cmd/weir/internal/config"
	"github.com/weir-go/weir/httplimit"
)

// proxy passes admitted requests to an upstream.
type proxy struct {
	reverse httputil.ReverseProxy
	server  *config.Server // the bounds of requests
	body    config.Body    // of our own answers
	name    string         // of the upstream, in the log and in metrics
	grpc    bool           // the upstream may speak gRPC: it has HTTP/2
	traffic *traffic
	seconds prometheus.Observer // until the header of the answer
	log     *slog.Logger
}

func newProxy(u *config.Upstream, transport *http.Transport, f *config.File, ip *httplimit.ClientIP,
	traffic *traffic, log *slog.Logger) *proxy {
	name := u.URL.Redacted()
	p := &proxy{
		server: &f.Server, body: f.Response.Body, name: name, traffic: traffic,
		grpc:    u.H2C || u.URL.Scheme == "https",
		seconds: traffic.header.WithLabelValues(name), log: log.With("upstream", name),
	}
	forward := newForwarder(u, f, ip)
	p.reverse = httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(u.URL)
			r.Out.URL.Opaque = "" // it would be sent in place of the path that the rules saw
			if u.KeepHost {
				r.Out.Host = r.In.Host
			}
			forward.set(r)
		},
		Transport:      transport,
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
	if h := w.Header(); len(h) > 0 {
		x.header = maps.Clone(h)
		clear(h)
	}
	x.deadline, x.passed = grpcDeadline(r), time.Now()
	stripUpgrade(r)
	if r.Body != http.NoBody {
		x.client.ReadCloser, x.client.pace = r.Body, p.pace(w, r)
		r.Body = &x.client
	}
	p.reverse.ServeHTTP(w, r)
	x.whole = true // an answer that breaks off ends with a panic
}

// pace returns the least rate of a request's body; nil for none. The stream of a gRPC call may be silent for
// hours, where the upstream can have any.
func (p *proxy) pace(w http.ResponseWriter, r *http.Request) *pace {
	if p.server.MinBodyRate == 0 || p.grpc && httplimit.IsGRPC(r) {
		return nil
	}
	pace := &pace{control: http.NewResponseController(w), rate: p.server.MinBodyRate}
	if p.server.ReadTimeout > 0 {
		pace.timeout = time.Now().Add(p.server.ReadTimeout)
	}
	return pace
}

// answered looks at the head of an answer.
func (p *proxy) answered(response *http.Response) error {
	// These fields replace the upstream's. Two lines of RateLimit would be one list, and a client could not tell
	// which limits are weir's.
	x := exchangeOf(response.Request)
	p.seconds.Observe(time.Since(x.passed).Seconds())
	maps.Copy(response.Header, x.header)
	if response.StatusCode == http.StatusSwitchingProtocols {
		if response.Request.Header.Get("Upgrade") == "" {
			return errors.New("the upstream changes the protocol, for which it was not asked")
		}
		return nil // no body but a connection, which either side may end
	}
	x.body = watchedBody{ReadCloser: response.Body, proxy: p, request: response.Request}
	response.Body = &x.body
	return nil
}

// unanswered answers when the upstream did not. The details are logged and not sent, because they name machines of the
// inner network.
func (p *proxy) unanswered(w http.ResponseWriter, r *http.Request, err error) {
	maps.Copy(w.Header(), exchangeOf(r).header)
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
	if exchangeOf(r).Context.Err() != nil {
		panic(http.ErrAbortHandler) // the client has gone: no answer is given, and none counted
	}
	if exchangeOf(r).expired() {
		exchangeOf(r).by = byWeir
		failGRPC(w, grpcDeadlineExceeded, "The deadline of the call is over")
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

// failed counts and logs a failure of the upstream. An error after the client has gone, or after its deadline, is not
// one.
func (p *proxy) failed(r *http.Request, reason string, err error) {
	if r.Context().Err() != nil || exchangeOf(r).expired() {
		return
	}
	p.traffic.upstreamFailures.Add(1)
	p.traffic.failures.WithLabelValues(p.name, reason).Inc()
	p.log.Error("upstream failed", "method", r.Method, "path", r.URL.Path, "err", err)
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
