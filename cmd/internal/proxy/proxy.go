package proxy

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/httplimit"
)

// noAgent makes net/http send no User-Agent.
var noAgent = []string{""}

// A Proxy passes requests to an upstream. It is an [http.Handler].
type Proxy struct {
	reverse  httputil.ReverseProxy
	upstream *Upstream
	http2    bool            // the servers may support HTTP/2, and so gRPC
	base     context.Context // when it ends, requests whose clients have gone end, too
}

func (u *Upstreams) newProxy(upstream *Upstream, servers *pool) *Proxy {
	p := &Proxy{upstream: upstream, http2: upstream.mayHaveHTTP2(), base: u.config.Base}
	p.reverse = httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			// The upstream must get the query that the rules have checked. ReverseProxy has removed parts that it
			// cannot parse, such as pairs with a semicolon.
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			r.Out.URL.Opaque = "" // otherwise it would be sent instead of the path that the rules have checked
			if !upstream.KeepHost {
				r.Out.Host = "" // the host of the URL is used
			}
			upstream.Forwarding.set(r)
			if r.Out.Header["User-Agent"] == nil {
				r.Out.Header["User-Agent"] = noAgent // ReverseProxy would allocate such a value
			}
		},
		Transport:      &balancer{servers, upstream.H2C},
		BufferPool:     Buffers,
		ModifyResponse: p.modifyResponse,
		ErrorHandler:   p.answerFailure,
		ErrorLog:       slog.NewLogLogger(u.config.Log.Handler(), slog.LevelDebug), // for debugging; see watchedBody
	}
	return p
}

// ServeHTTP implements [http.Handler]. It panics if the upstream breaks off an answer.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.upstream.KeepHost && r.Host == "" { // net/http would send the host of the URL, which no rule has checked
		p.upstream.Fail(w, r, Failure{Status: http.StatusBadRequest, Detail: "The request has no host", Unsent: true})
		return
	}
	x := exchangeOf(r)
	if x == nil {
		x = &Exchange{}
		r = r.WithContext(context.WithValue(r.Context(), ExchangeKey{}, x))
	}
	x.ResponseWriter, x.client = w, r.Context()
	x.sent = time.Since(epoch)
	if timeout, ok := grpcTimeout(r); ok {
		x.deadline = x.sent + timeout
	}
	stripUpgrade(r, p.upstream.H2C)
	x.body.begin(r)
	defer func() {
		if x.server != nil {
			x.server.release()
		}
	}()
	if p.upstream.IgnoreAbort {
		var end func()
		r, end = x.delayAbort(r, p.base, p.upstream.ResponseTimeout)
		defer end()
	}
	x.answer.isWaiting = true
	p.reverse.ServeHTTP(x, r)
}

// MayBeSilent reports whether the body of a request may pause for long: a gRPC stream may be silent for hours.
func (p *Proxy) MayBeSilent(r *http.Request) bool { return p.http2 && httplimit.IsGRPC(r) }

func (p *Proxy) modifyResponse(response *http.Response) error {
	x := exchangeOf(response.Request)
	x.setAnswered()
	x.endAbortDelay()
	x.server.seconds.Observe((time.Since(epoch) - x.sent).Seconds())
	if response.StatusCode == http.StatusSwitchingProtocols {
		if err := x.openTunnel(response); err != nil {
			return err
		}
	}
	x.server.markReachable()
	// Fields of the caller replace fields of the upstream with the same name. Two RateLimit fields, for example, would
	// be one list. A client could then not know which of the limits the caller has set.
	header := x.ResponseWriter.Header()
	if values := header["Vary"]; values != nil {
		header["Vary"] = slices.Concat(values, response.Header["Vary"])
	}
	for name := range header {
		delete(response.Header, name)
		delete(response.Trailer, name) // announced fields of the trailer
	}
	if response.ContentLength < 0 || response.ProtoMajor > 1 { // the trailer may have fields that were not announced
		x.answer.callerFields = slices.Collect(maps.Keys(header))
	}
	if x.tunnel != nil { // ReverseProxy writes the header of a tunnel
		return nil
	}
	moveHeader(response.Header, header)
	x.answer.body = watchedBody{ReadCloser: response.Body, exchange: x, response: response}
	response.Body = &x.answer.body
	return nil
}

// moveHeader moves the upstream's header fields to the header of the client's answer. No field may be in both headers.
// If ReverseProxy copied the fields, it would allocate for each. The Content-Type of an event stream is not moved,
// because ReverseProxy reads it to decide whether to pass on events at once.
func moveHeader(from, to http.Header) {
	mediaType := from["Content-Type"]
	maps.Copy(to, from)
	clear(from)
	if isEvents(mediaType) {
		delete(to, "Content-Type")
		from["Content-Type"] = mediaType
	}
}

func isEvents(mediaType []string) bool {
	const events = "text/event-stream"
	return len(mediaType) > 0 && len(mediaType[0]) >= len(events) && strings.EqualFold(mediaType[0][:len(events)], events)
}
