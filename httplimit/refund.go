package httplimit

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// RefundStatus returns a Refund function ([Limit]) for responses with a status from low to high: with 200 and 299, only
// failures use up the limit. The IETF headers are written before that, and show the cost as taken.
//
// A failed gRPC call also has the status 200. Under [Middleware.Handler] nothing is given back for it, whatever low and
// high are, and nothing for an answer that was broken off ([Limit]).
func RefundStatus(low, high int) func(*http.Request, int) bool {
	return func(_ *http.Request, status int) bool { return low <= status && status <= high }
}

// Serve passes an admitted request on as [Middleware.Handler] does: it sets the headers of the limits, puts holds into
// the context, and ends the request when next returns. If next leaves the answer to other code, it returns the status
// that this code will write, and otherwise 0. Serve is for frameworks whose handlers return errors.
func (res *Result) Serve(w http.ResponseWriter, r *http.Request, next func(http.ResponseWriter, *http.Request) (status int)) {
	if res.InFlight() {
		defer res.Release()
	}
	res.WriteHeaders(w.Header())
	if res.Holds() {
		r = r.WithContext(res.Context(r.Context()))
	}
	if !res.Refundable() {
		next(w, r)
		return
	}
	noted := &statusWriter{ResponseWriter: w, ctx: r.Context()}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &notedBody{r.Body, noted}
	}
	returned := false
	defer func() { // a panic continues
		if status, whole := noted.outcome(returned); whole {
			res.Finish(r, status)
		}
	}()
	if status := next(noted.full(), r); status != 0 {
		noted.note(status)
	}
	returned = true
}

// outcome returns the status to settle with. whole is false if nothing may be given back, because a client could
// otherwise get its tokens back by breaking off its own request:
//   - a client that went away before the answer began may have caused the status: a handler that sees the end of its
//     context answers with an error;
//   - an answer that was broken off by a panic is neither the success of its status nor a failure of the server;
//   - a body of the request that breaks off makes a proxy answer with an error, and the server behind it may have
//     worked on the request;
//   - a panic before any status, like that of net/http/httputil.ReverseProxy, may be due to a client that went away;
//   - a gRPC call that failed has an HTTP status of 200.
func (w *statusWriter) outcome(returned bool) (status int, whole bool) {
	switch {
	case !returned && w.status != 0 || w.gone || w.broke.Load() || w.status == 0 && w.ctx.Err() != nil:
		return 0, false
	case !returned:
		return http.StatusInternalServerError, true
	}
	return w.final(), !failedGRPC(w.Header())
}

// A statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	ctx    context.Context // of the request
	status int
	gone   bool        // the client had gone when the answer began
	broke  atomic.Bool // the body of the request broke off
}

// A notedBody is the body of a request. Its writer notes that it breaks off.
type notedBody struct {
	io.ReadCloser
	of *statusWriter
}

// Read implements [io.Reader]. Two errors do not mean that the body broke off: it is too long for the program, or it
// was read after it was closed, as by a transport whose server answered early.
func (b *notedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if tooLong := (*http.MaxBytesError)(nil); err != nil && err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose) &&
		!errors.As(err, &tooLong) {
		b.of.broke.Store(true)
	}
	return n, err
}

// note records the status when the answer begins.
func (w *statusWriter) note(status int) {
	if w.status == 0 {
		w.status, w.gone = status, w.ctx.Err() != nil
	}
}

// final returns the status of the finished response: 200 if the handler did not set one.
func (w *statusWriter) final() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

// WriteHeader records the first status that is final: any status but the informational ones (1xx), and 101.
func (w *statusWriter) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.note(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write makes the status final: a status set later is too late.
func (w *statusWriter) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

// WriteString is for io.WriteString, and as fast as the original's.
func (w *statusWriter) WriteString(s string) (int, error) {
	w.begin()
	return io.WriteString(w.ResponseWriter, s)
}

// ReadFrom is for io.Copy, and as fast as the original's (sendfile).
func (w *statusWriter) ReadFrom(src io.Reader) (int64, error) {
	w.begin()
	return io.Copy(w.ResponseWriter, src)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) begin() { w.note(http.StatusOK) }

// hijack is Hijack. The writer does not see what is sent on a hijacked connection.
func (w *statusWriter) hijack(h http.Hijacker) (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := h.Hijack()
	if err == nil {
		w.note(http.StatusSwitchingProtocols)
	}
	return conn, buffer, err
}

// full returns the writer with the optional methods that the original has, because handlers detect these methods by
// type assertion.
func (w *statusWriter) full() http.ResponseWriter {
	_, flushes := w.ResponseWriter.(http.Flusher)
	h, hijacks := w.ResponseWriter.(http.Hijacker)
	p, pushes := w.ResponseWriter.(http.Pusher)
	switch {
	case flushes && hijacks:
		return struct {
			*statusWriter
			flusher
			hijacker
		}{w, flusher{w}, hijacker{w, h}}
	case flushes && pushes:
		return struct {
			*statusWriter
			flusher
			http.Pusher
		}{w, flusher{w}, p}
	case flushes:
		return struct {
			*statusWriter
			flusher
		}{w, flusher{w}}
	case hijacks:
		return struct {
			*statusWriter
			hijacker
		}{w, hijacker{w, h}}
	}
	return w
}

type flusher struct{ w *statusWriter }

func (f flusher) Flush() { f.FlushError() }

// FlushError is for http.ResponseController.
func (f flusher) FlushError() error {
	f.w.begin()
	return http.NewResponseController(f.w.ResponseWriter).Flush()
}

type hijacker struct {
	w *statusWriter
	h http.Hijacker
}

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return h.w.hijack(h.h) }
