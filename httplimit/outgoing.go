package httplimit

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
)

// RoundTripper returns a transport for requests that the program sends. It checks each request against the limits, and
// sends admitted requests by next. A nil next means [http.DefaultTransport]. The transport is safe for concurrent use
// if next is.
//
//	client := &http.Client{Transport: m.RoundTripper(nil)}
//
// If a limit has a MaxWait, a request waits for its tokens, at most until its context is done. A refused request is not
// sent, and RoundTrip returns a [*RefusedError]. A request takes its tokens once, even if next sends it again. A
// redirect is a new request.
//
// The key [Host] counts the requests to each server separately, and [Everyone] counts all together. A client's address,
// such as [RemoteIP], makes no sense as a key here.
//
// A request is in flight until the body of its response is closed, was read to its end, or breaks off. Refund gets the
// status when the body is closed or was read. If there is no response, or if its body breaks off, no tokens are given
// back.
func (m *Middleware) RoundTripper(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &limitedTransport{m, next}
}

// A RefusedError says that a request was not sent, because a limit of [Middleware.RoundTripper] refused it.
type RefusedError struct {
	// Limit is the name of the limit with the longest wait. It is empty if no limit has decided.
	Limit string
	// RetryAfter is the time after which the request could pass. It is 0 if the time is unknown, and [engine.Never] if
	// the request can never pass.
	RetryAfter time.Duration
	// Err is the error of the request's context if the context ended the wait. Otherwise it is nil.
	Err error
}

func (e *RefusedError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("httplimit: the wait for the limits of the request ended: %v", e.Err)
	case e.Limit == "":
		return "httplimit: the limits of the request could not be applied"
	case e.RetryAfter == engine.Never:
		return fmt.Sprintf("httplimit: the limit %q never admits the request", e.Limit)
	case e.RetryAfter == 0:
		return fmt.Sprintf("httplimit: the limit %q refuses the request", e.Limit)
	}
	return fmt.Sprintf("httplimit: the limit %q refuses the request: again after %v", e.Limit, e.RetryAfter)
}

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// A limitedTransport implements [Middleware.RoundTripper].
type limitedTransport struct {
	middleware *Middleware
	next       http.RoundTripper
}

func (o *limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res := o.middleware.Decide(r)
	if !res.Allowed() {
		if r.Body != nil {
			_ = r.Body.Close() // a transport must always close the body
		}
		refused := &RefusedError{RetryAfter: res.Result.RetryAfter(), Err: res.Err()}
		if c, ok := res.Tightest(); ok && res.Verdict() == limits.Limited {
			refused.Limit = c.Name()
		}
		return nil, refused
	}
	answered := false
	defer func() {
		if !answered { // next returned an error or panicked
			res.Release()
		}
	}()
	response, err := o.next.RoundTrip(r)
	if err != nil {
		return response, err
	}
	answered = true
	if !res.InFlight() && !res.Refundable() {
		return response, nil
	}
	body := &finishingBody{ReadCloser: response.Body, end: func(complete bool) {
		if complete {
			res.Finish(r, response.StatusCode)
		}
		res.Release()
	}}
	response.Body = body
	if w, ok := body.ReadCloser.(io.Writer); ok { // after 101, the body is the connection of another protocol
		response.Body = struct {
			*finishingBody
			io.Writer
		}{body, w}
	}
	return response, nil
}

// A finishingBody is the body of a response, and ends the request once. The request ends when the body is closed, was
// read to its end, or breaks off.
type finishingBody struct {
	io.ReadCloser
	once sync.Once
	end  func(complete bool)
}

func (f *finishingBody) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if err != nil {
		f.once.Do(func() { f.end(err == io.EOF) })
	}
	return n, err
}

func (f *finishingBody) Close() error {
	defer f.once.Do(func() { f.end(true) })
	return f.ReadCloser.Close()
}
