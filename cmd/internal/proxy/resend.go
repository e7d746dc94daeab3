package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
)

// An admitted request must be executed only once, but net/http may send a request without a body again:
//
//   - after the server closes a kept connection without an answer,
//   - up to six times after an HTTP/2 server resets the stream, or
//   - if the client permits it with a header field (Idempotency-Key).
//
// The functions below permit one more attempt for methods that change nothing, and none for other methods.

// A resend bounds how often one request is sent.
type resend struct {
	upstreams *Upstreams
	body      bytes.Reader // always empty; net/http calls GetBody before it sends a request with a body again
	used      bool         // a request that may have been executed has been sent again
	refused   bool         // a request that was not executed has been sent again
	empty     bool         // the client has sent no body
}

var errSentTwice = errors.New("the server closed a connection without an answer, and then another one")

// getBody is the GetBody of a request. Its first call permits one more attempt, and later calls return an error.
func (s *resend) getBody() (io.ReadCloser, error) {
	if s.used {
		return nil, errSentTwice
	}
	s.used = true
	s.upstreams.retries.Inc()
	return io.NopCloser(&s.body), nil
}

var identity = []string{"identity"} // no Content-Length and no chunks: the request ends with its header

// restrict changes a request so that net/http cannot send it again unless the resend s permits it.
func (s *resend) restrict(r *http.Request, isHTTP1 bool) {
	if !s.empty {
		return // net/http cannot read this body a second time
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		// net/http calls GetBody only if a request has a body. So the request gets an empty body. net/http reads it
		// before it sends the header, because the body is in memory.
		r.Body, r.GetBody, r.TransferEncoding = io.NopCloser(&s.body), s.getBody, identity
		return
	}
	if !isHTTP1 {
		r.Body, r.GetBody = io.NopCloser(&s.body), nil
		return
	}
	// With an empty body, this request would have no Content-Length. So it gets no body. Instead, the fields that
	// permit another attempt are renamed, because net/http looks only for their canonical names.
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, ok := r.Header[name]; ok {
			delete(r.Header, name)
			r.Header[strings.ToLower(name)] = values
		}
	}
}

// isUnprocessed reports whether an HTTP/2 server has not processed a request without a body. Such a server has refused
// the stream or is about to end. net/http does not export the error.
func isUnprocessed(err error) bool {
	text, ok := strings.CutPrefix(err.Error(), "http2: Transport: cannot retry err [")
	return ok && (strings.Contains(text, "; REFUSED_STREAM; received from peer]") ||
		strings.HasPrefix(text, "http2: Transport received Server's graceful shutdown GOAWAY]"))
}
