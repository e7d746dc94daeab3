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

// RefundStatus returns a Refund function ([Limit]) that gives the cost back if the status is from low to high. With 200
// and 299, only failures use up the limit. Headers show the cost as taken, because they are written before the refund.
//
// The cost of a failed gRPC call is never given back by [Middleware.Handler], although its HTTP status is 200. Neither
// is the cost of an answer that was broken off ([Limit]).
func RefundStatus(low, high int) func(*http.Request, int) bool {
	return func(_ *http.Request, status int) bool { return low <= status && status <= high }
}

// Serve passes an admitted request on as [Middleware.Handler] does. It sets the headers, stores holds in the context,
// and ends the request when next returns. Use Serve in frameworks whose handlers return errors. In these, other code
// may write the answer after next has returned. Then next must return the status that this code will write. Otherwise
// next must return 0.
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
	recorder := &statusWriter{ResponseWriter: w, ctx: r.Context()}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &watchedBody{r.Body, recorder}
	}
	returned := false
	defer func() { // also runs if next panics; the panic continues
		if status, refundable := recorder.outcome(returned); refundable {
			res.Finish(r, status)
		}
	}()
	if status := next(recorder.withOptionalMethods(), r); status != 0 {
		recorder.note(status)
	}
	returned = true
}

// outcome returns the status for Refund. The result refundable is false if nothing may be given back. A client must not
// get tokens back by breaking off its own request. So refundable is false in these cases:
//   - The client went away before the answer began. It may have caused the status, because a handler whose context is
//     done answers with an error.
//   - A panic broke off the answer. So its status means neither success nor a failure of the server.
//   - The body of the request broke off. A proxy then answers with an error, although the server behind it may have
//     worked on the request.
//   - The handler panicked before it wrote a status, and the client has gone. net/http/httputil.ReverseProxy panics in
//     this way because of the client.
//   - A gRPC call failed. Its HTTP status is 200.
func (w *statusWriter) outcome(returned bool) (status int, refundable bool) {
	switch {
	case !returned && w.status != 0 || w.clientGone || w.bodyBroke.Load() || w.status == 0 && w.ctx.Err() != nil:
		return 0, false
	case !returned:
		return http.StatusInternalServerError, true
	}
	return w.finalStatus(), !failedGRPC(w.Header())
}

// A statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	ctx        context.Context // of the request
	status     int
	clientGone bool        // the client had gone when the answer began
	bodyBroke  atomic.Bool // the body of the request broke off
}

// A watchedBody is the body of a request. If the body breaks off, it records this in the statusWriter.
type watchedBody struct {
	io.ReadCloser
	recorder *statusWriter
}

// Read implements [io.Reader]. Two errors do not mean that the body broke off. The first is for a body that is too long
// for the program. The second is for a body that is read after it was closed, as transports do if their server answers
// early.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if tooLong := (*http.MaxBytesError)(nil); err != nil && err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose) &&
		!errors.As(err, &tooLong) {
		b.recorder.bodyBroke.Store(true)
	}
	return n, err
}

// note records the status when the answer begins.
func (w *statusWriter) note(status int) {
	if w.status == 0 {
		w.status, w.clientGone = status, w.ctx.Err() != nil
	}
}

// finalStatus returns the status of the finished response. It is 200 if the handler did not set a status.
func (w *statusWriter) finalStatus() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

// WriteHeader records the first final status. A status is final if it is 101 or is not informational (1xx).
func (w *statusWriter) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.note(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write records the status. A handler cannot change the status after it has begun to write the body.
func (w *statusWriter) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

// WriteString is for io.WriteString. It is as fast as the method of the original writer.
func (w *statusWriter) WriteString(s string) (int, error) {
	w.begin()
	return io.WriteString(w.ResponseWriter, s)
}

// ReadFrom is for io.Copy. It is as fast as the method of the original writer, which uses sendfile.
func (w *statusWriter) ReadFrom(src io.Reader) (int64, error) {
	w.begin()
	return io.Copy(w.ResponseWriter, src)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) begin() { w.note(http.StatusOK) }

// hijack implements Hijack. It records 101, because the writer does not see what is sent on a hijacked connection.
func (w *statusWriter) hijack(h http.Hijacker) (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := h.Hijack()
	if err == nil {
		w.note(http.StatusSwitchingProtocols)
	}
	return conn, buffer, err
}

// withOptionalMethods returns a writer that has exactly the optional methods of the original writer. Handlers detect
// such methods by type assertion.
func (w *statusWriter) withOptionalMethods() http.ResponseWriter {
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
