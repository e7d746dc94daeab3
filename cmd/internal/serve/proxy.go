package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/config"
	"github.com/weir-go/weir/httplimit"
)

// noAgent is the User-Agent with which net/http sends none.
var noAgent = []string{""}

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
			if r.Out.Header["User-Agent"] == nil {
				r.Out.Header["User-Agent"] = noAgent // ReverseProxy would allocate one
			}
		},
		Transport:      &balancer{servers, u.H2C, traffic.retries},
		BufferPool:     answerBuffers,
		ModifyResponse: p.answered,
		ErrorHandler:   p.unanswered,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug), // watchedBody logs it better
	}
	return p
}

// ServeHTTP implements [http.Handler].
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := exchangeOf(r)
	x.deadline, x.passed = grpcDeadline(r), time.Since(x.begin)
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
	x.waiting = true
	p.reverse.ServeHTTP(w, r)
	x.whole = true // an answer that breaks off ends with a panic
}

// mayBeSilent reports whether the body of a request has no least rate: the stream of a gRPC call may be silent for
// hours, where the upstream can have any.
func (p *proxy) mayBeSilent(r *http.Request) bool { return p.grpc && httplimit.IsGRPC(r) }

// answered looks at the head of an answer.
func (p *proxy) answered(response *http.Response) error {
	x := exchangeOf(response.Request)
	x.answered()
	x.begun()
	x.server.seconds.Observe((time.Since(x.begin) - x.passed).Seconds())
	if response.StatusCode == http.StatusSwitchingProtocols {
		if err := x.openTunnel(response); err != nil {
			return err
		}
	}
	x.server.reached()
	// weir's fields replace the upstream's. Two lines of RateLimit would be one list, and a client could not tell
	// which limits are weir's.
	header := x.Header()
	if vary, own := response.Header["Vary"], header["Vary"]; vary != nil && own != nil {
		header["Vary"] = slices.Concat(own, vary)
	}
	for name := range header {
		delete(response.Header, name)
		delete(response.Trailer, name) // what is announced
	}
	if response.ContentLength < 0 || response.ProtoMajor > 1 { // a trailer may come that is not
		x.own = slices.Collect(maps.Keys(header))
	}
	if x.tunnel != nil { // whose header ReverseProxy writes
		return nil
	}
	moveHeader(response.Header, header)
	x.body = watchedBody{ReadCloser: response.Body, proxy: p, response: response}
	response.Body = &x.body
	return nil
}

// moveHeader moves the header of an upstream's answer to that of the client's, which has no field of the same name.
// ReverseProxy would copy field by field, with an allocation for each. It reads the media type, to pass events on at
// once, so that of events stays.
func moveHeader(from, to http.Header) {
	mediaType := from["Content-Type"]
	maps.Copy(to, from)
	clear(from)
	if isEvents(mediaType) {
		delete(to, "Content-Type")
		from["Content-Type"] = mediaType
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
	x := exchangeOf(r)
	x.answered()
	var slow net.Error
	if broken := x.client.err(); broken != nil {
		// The client may be gone; then the answer is lost.
		w.Header().Set("Connection", "close")
		if errors.As(broken, &slow) && slow.Timeout() {
			fail(w, r, p.body, http.StatusRequestTimeout, "The body of the request did not come in time")
			return
		}
		fail(w, r, p.body, http.StatusBadRequest, "The body of the request breaks off")
		return
	}
	if x.Context.Err() != nil || x.isHijacked() {
		panic(http.ErrAbortHandler) // the client has gone: no answer is given, and none counted
	}
	if x.expired() {
		x.by = byWeir
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
// over HTTP/2. The upstream has not been asked and is not to blame. net/http does not export the error.
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
	if isUnconnected(err) {
		x.server.unreached(err)
	}
}

// A watchedBody notices an upstream that breaks off in the middle of its answer. ReverseProxy does not call unanswered
// then, because the status has been sent. At its end it removes from the trailer what weir has set in the header.
type watchedBody struct {
	io.ReadCloser
	proxy    *proxy
	response *http.Response
}

func (b *watchedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if errors.Is(err, io.EOF) {
		for _, name := range exchangeOf(b.response.Request).own {
			delete(b.response.Trailer, name) // which has come with the end
		}
	} else if err != nil && exchangeOf(b.response.Request).client.err() == nil {
		b.proxy.failed(b.response.Request, "broken", err)
	}
	return n, err
}
