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

// noAgent is the value of User-Agent for which net/http sends no such field.
var noAgent = []string{""}

// A Proxy passes requests to an upstream. It is an [http.Handler].
type Proxy struct {
	reverse  httputil.ReverseProxy
	upstream *Upstream
	http2    bool            // the servers may support HTTP/2, and so gRPC
	base     context.Context // when it ends, requests whose clients have gone end, too
}

func (u *Upstreams) newProxy(up *Upstream, servers *pool) *Proxy {
	p := &Proxy{upstream: up, http2: up.mayHaveHTTP2(), base: u.config.Base}
	p.reverse = httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			// The upstream must get the same query that the rules have checked. ReverseProxy has removed the parts that
			// it cannot parse from r.Out, such as all pairs with a semicolon. So this restores the original query.
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			r.Out.URL.Opaque = "" // otherwise it would be sent instead of the path that the rules have checked
			if !up.KeepHost {
				r.Out.Host = "" // the host of the URL is used
			}
			up.Forwarding.set(r)
			if r.Out.Header["User-Agent"] == nil {
				r.Out.Header["User-Agent"] = noAgent // ReverseProxy would allocate such a value
			}
		},
		Transport:      &balancer{servers, up.H2C},
		BufferPool:     Buffers,
		ModifyResponse: p.answered,
		ErrorHandler:   p.unanswered,
		ErrorLog:       slog.NewLogLogger(u.config.Log.Handler(), slog.LevelDebug), // for debugging; see watchedBody
	}
	return p
}

// ServeHTTP implements [http.Handler]. It panics if the answer breaks off.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := exchangeOf(r)
	if x == nil {
		x = &Exchange{}
		r = r.WithContext(context.WithValue(r.Context(), ExchangeKey{}, x))
	}
	x.ResponseWriter, x.client = w, r.Context()
	x.sent = time.Since(epoch)
	if timeout, said := grpcTimeout(r); said {
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
	x.answer.waiting = true
	p.reverse.ServeHTTP(x, r)
}

// MayBeSilent reports whether the body of a request may pause for a long time. The stream of a gRPC call may be silent
// for hours, if the upstream can have such calls.
func (p *Proxy) MayBeSilent(r *http.Request) bool { return p.http2 && httplimit.IsGRPC(r) }

// answered handles the header of an upstream's answer.
func (p *Proxy) answered(response *http.Response) error {
	x := exchangeOf(response.Request)
	x.answered()
	x.begun()
	x.server.seconds.Observe((time.Since(epoch) - x.sent).Seconds())
	if response.StatusCode == http.StatusSwitchingProtocols {
		if err := x.openTunnel(response); err != nil {
			return err
		}
	}
	x.server.reached()
	// The caller's fields replace the upstream's. Two lines of RateLimit would be read as one list, and a client could
	// not know which limits are the caller's.
	header := x.ResponseWriter.Header()
	if own := header["Vary"]; own != nil {
		header["Vary"] = slices.Concat(own, response.Header["Vary"])
	}
	for name := range header {
		delete(response.Header, name)
		delete(response.Trailer, name) // announced fields of the trailer
	}
	if response.ContentLength < 0 || response.ProtoMajor > 1 { // the trailer may have fields that were not announced
		x.answer.own = slices.Collect(maps.Keys(header))
	}
	if x.tunnel != nil { // ReverseProxy writes the header of a tunnel
		return nil
	}
	moveHeader(response.Header, header)
	x.answer.body = watchedBody{ReadCloser: response.Body, exchange: x, response: response}
	response.Body = &x.answer.body
	return nil
}

// moveHeader moves the header of an upstream's answer to the answer to the client. No field may be in both.
// ReverseProxy would copy the fields, with an allocation for each. The media type of an event stream stays in the
// upstream's answer. ReverseProxy reads it there, and therefore passes on events at once.
func moveHeader(from, to http.Header) {
	mediaType := from["Content-Type"]
	maps.Copy(to, from)
	clear(from)
	if isEvents(mediaType) {
		delete(to, "Content-Type")
		from["Content-Type"] = mediaType
	}
}

// isEvents reports whether a media type is the media type of event streams.
func isEvents(mediaType []string) bool {
	const events = "text/event-stream"
	return len(mediaType) > 0 && len(mediaType[0]) >= len(events) && strings.EqualFold(mediaType[0][:len(events)], events)
}
