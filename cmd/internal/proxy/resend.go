package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
)

// One admitted request must be executed only once, but net/http may send a request without a body again. It does so
// over every kept connection that the server closes without an answer, and up to six times over HTTP/2 when the server
// resets the stream. A field of the client (Idempotency-Key) can allow it. The functions below leave it one further
// attempt for methods that change nothing, and none for others.

// A resend bounds how often one request is sent.
type resend struct {
	of      *Upstreams
	body    bytes.Reader // empty: net/http asks GetBody before it sends a request with a body again
	used    bool         // a request that may have been executed was sent again
	refused bool         // a request that was not executed was sent again
	empty   bool         // the client sent no body
}

var errSentTwice = errors.New("the server closed a connection without an answer, and then another one")

// again is the GetBody of a request that may be sent once more.
func (s *resend) again() (io.ReadCloser, error) {
	if s.used {
		return nil, errSentTwice
	}
	s.used = true
	s.of.retries.Inc()
	return io.NopCloser(&s.body), nil
}

var identity = []string{"identity"} // neither a length nor chunks: the body ends with the header

// bound changes a request to a server so that net/http sends it again only as far as s allows.
func (s *resend) bound(r *http.Request, isHTTP1 bool) {
	if !s.empty {
		return // net/http cannot read the body again
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		// The body is in memory, so that the header is sent when the body has been read. Otherwise net/http would not
		// call GetBody.
		r.Body, r.GetBody, r.TransferEncoding = io.NopCloser(&s.body), s.again, identity
		return
	}
	if !isHTTP1 {
		r.Body, r.GetBody = io.NopCloser(&s.body), nil
		return
	}
	// With such a body there would be no Content-Length. The names that net/http looks for are the canonical ones.
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, is := r.Header[name]; is {
			delete(r.Header, name)
			r.Header[strings.ToLower(name)] = values
		}
	}
}

// isUnprocessed reports whether an error says that an HTTP/2 server has not processed a request without a body: it
// refused the stream, or was about to end. net/http does not export the error.
func isUnprocessed(err error) bool {
	text, is := strings.CutPrefix(err.Error(), "http2: Transport: cannot retry err [")
	return is && (strings.Contains(text, "; REFUSED_STREAM; received from peer]") ||
		strings.HasPrefix(text, "http2: Transport received Server's graceful shutdown GOAWAY]"))
}
