package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
)

// answerFailure answers a request that the upstream did not answer. The details are only in the log. The client does
// not get them, because they name internal machines.
func (p *Proxy) answerFailure(_ http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r)
	x.setAnswered()
	if broken := x.body.err(); broken != nil {
		// The client may have gone, and then the answer is lost.
		x.Header().Set("Connection", "close")
		if isTimeout(broken) {
			p.fail(x, r, http.StatusRequestTimeout, "The body of the request did not come in time")
			return
		}
		p.fail(x, r, http.StatusBadRequest, "The body of the request breaks off")
		return
	}
	if x.client.Err() != nil || x.isHijacked() {
		panic(http.ErrAbortHandler) // the client has gone, so nothing is answered or counted
	}
	if x.expired() {
		p.upstream.Fail(x.ResponseWriter, r, Failure{
			Status: http.StatusGatewayTimeout, Detail: "The deadline of the call is over", Expired: true,
		})
		return
	}
	if isTooLarge(err) {
		p.fail(x, r, http.StatusRequestHeaderFieldsTooLarge, "The header of the request is larger than the upstream server takes")
		return
	}
	if isTimeout(err) {
		x.recordFailure(r, "timeout", err)
		p.upstream.Fail(x.ResponseWriter, r, Failure{
			Status: http.StatusGatewayTimeout, Detail: "The upstream server did not answer in time", Unsent: isUnconnected(err),
		})
		return
	}
	x.recordFailure(r, "unanswered", err)
	p.upstream.Fail(x.ResponseWriter, r, Failure{
		Status: http.StatusBadGateway, Detail: "The upstream server did not answer", Unsent: isUnconnected(err),
	})
}

func (p *Proxy) fail(x *Exchange, r *http.Request, status int, detail string) {
	p.upstream.Fail(x.ResponseWriter, r, Failure{Status: status, Detail: detail})
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout()
}

// isTooLarge reports whether the header of a request was larger than the upstream accepts over HTTP/2. In this case
// net/http did not send the request, and the upstream has not failed. net/http does not export the error.
func isTooLarge(err error) bool {
	return strings.HasSuffix(err.Error(), "request header list larger than peer's advertised limit")
}

// recordFailure counts and logs a failure of the upstream. It does nothing if the client has gone or its deadline is
// over.
func (x *Exchange) recordFailure(r *http.Request, reason string, err error) {
	if r.Context().Err() != nil || x.expired() {
		return
	}
	upstreams := x.server.pool.upstreams
	upstreams.failed.Add(1)
	x.server.failed.Add(1)
	upstreams.failures.WithLabelValues(x.server.Target.String(), reason).Inc()
	x.server.log.Error("upstream failed", "method", r.Method, "path", r.URL.Path, "err", err)
	if isUnconnected(err) {
		x.server.markUnreachable(err)
	}
}

// A watchedBody is the body of an answer. It notices when the upstream breaks off. ReverseProxy does not call
// answerFailure then, because the status was already sent. At the end of the body, a watchedBody removes the caller's
// header fields from the trailer.
type watchedBody struct {
	io.ReadCloser
	exchange *Exchange
	response *http.Response
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		for _, name := range b.exchange.answer.callerFields {
			delete(b.response.Trailer, name) // the trailer arrives with the end
		}
	} else if err != nil && b.exchange.body.err() == nil {
		b.exchange.recordFailure(b.response.Request, "broken", err)
	}
	return n, err
}
