package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
)

// An admitted request must be executed only once, but net/http may send a request without a body again in three cases:
//
//   - The server closes a connection that was kept open, without an answer.
//   - An HTTP/2 server resets the stream. In this case, net/http may send the request again up to six times.
//   - The client permits it with a header field (Idempotency-Key).
//
// The functions below permit one more attempt for methods that change nothing, and none for other methods.

// A resend bounds how often one request is sent.
type resend struct {
	of      *Upstreams
	body    bytes.Reader // always empty; net/http calls GetBody before it sends a request with a body again
	used    bool         // a request that may have been executed has been sent again
	refused bool         // a request that was not executed has been sent again
	empty   bool         // the client has sent no body
}

var errSentTwice = errors.New("the server closed a connection without an answer, and then another one")

// again is the GetBody of a request. It permits sending the request once more.
func (s *resend) again() (io.ReadCloser, error) {
	if s.used {
		return nil, errSentTwice
	}
	s.used = true
	s.of.retries.Inc()
	return io.NopCloser(&s.body), nil
}

var identity = []string{"identity"} // no Content-Length and no chunks: the request ends with its header

// bound changes a request so that net/http sends it again only if s permits it.
func (s *resend) bound(r *http.Request, isHTTP1 bool) {
	if !s.empty {
		return // net/http cannot read this body a second time
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		// net/http calls GetBody only if the request has a body. The body that is set here is empty. Because it is in
		// memory, net/http sends the header only when it has read the body.
		r.Body, r.GetBody, r.TransferEncoding = io.NopCloser(&s.body), s.again, identity
		return
	}
	if !isHTTP1 {
		r.Body, r.GetBody = io.NopCloser(&s.body), nil
		return
	}
	// This request gets no such body, because with it, the request would have no Content-Length. Instead, the header
	// fields that permit sending the request again are renamed: net/http looks for the canonical names only.
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, is := r.Header[name]; is {
			delete(r.Header, name)
			r.Header[strings.ToLower(name)] = values
		}
	}
}

// isUnprocessed reports whether an error says that an HTTP/2 server has not processed a request without a body. In this
// case, the server has refused the stream or is about to end. net/http does not export the error.
func isUnprocessed(err error) bool {
	text, is := strings.CutPrefix(err.Error(), "http2: Transport: cannot retry err [")
	return is && (strings.Contains(text, "; REFUSED_STREAM; received from peer]") ||
		strings.HasPrefix(text, "http2: Transport received Server's graceful shutdown GOAWAY]"))
}
