package serve

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/weir-go/weir/cmd/internal/listen"
	"github.com/weir-go/weir/cmd/internal/proxy"
	"github.com/weir-go/weir/httplimit/reading"
)

// An exchange is a client's request and its answer. It is also the context of the request. So a request needs one
// allocation instead of several.
type exchange struct {
	context.Context
	response
	begin           time.Time
	answeredBy      answerer
	isComplete      bool // the handler behind the limits has answered completely
	reachedUpstream bool // an upstream may have received the request
	proxyExchange   proxy.Exchange
	parsedTarget    reading.Parsed
}

type answerer uint8

const (
	byLimits   answerer = iota // a refusal by the limits
	byUpstream                 // the upstream, or the built-in echo
	byWeir                     // an error of weir
	answerers
)

// String returns the answerer as a label of metrics.
func (a answerer) String() string { return [answerers]string{"limits", "upstream", "weir"}[a] }

type exchangeKey struct{}

func (x *exchange) Value(key any) any {
	switch key.(type) {
	case exchangeKey:
		return x
	case proxy.ExchangeKey:
		return &x.proxyExchange
	case reading.ParsedKey:
		return &x.parsedTarget
	}
	return x.Context.Value(key)
}

// newExchange returns the exchange of a request, and makes it the context of the request. To save an allocation, it
// changes the request in place. This is safe, because net/http does not read the context after it has called the
// handler.
func newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{Context: r.Context(), response: response{ResponseWriter: w}, begin: time.Now()}
	*r = *r.WithContext(x)
	return x
}

// exchangeOf returns the exchange of a request. It returns nil if the request is not from a client.
func exchangeOf(r *http.Request) *exchange {
	if x, ok := r.Context().(*exchange); ok { // the most frequent case, and faster
		return x
	}
	x, _ := r.Context().Value(exchangeKey{}).(*exchange)
	return x
}

// isRefundable reports whether the answer may give tokens back. For that, the complete answer must come from the
// upstream, and the client must still be connected. Otherwise a client could get tokens back if it disconnects or
// causes an error of weir.
func (x *exchange) isRefundable() bool {
	return x != nil && x.isComplete && x.answeredBy == byUpstream && x.Context.Err() == nil
}

type response struct {
	http.ResponseWriter
	status int // the final status; 0 if none was written
	bytes  int64
	stream *listen.StreamSender // over HTTP/2 with a send_timeout; nil otherwise
	body   *listen.Body         // body of the request, with a minimum rate; nil if there is none
}

func (w *response) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
		if w.body.Answering() {
			w.Header().Set("Connection", "close")
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.stream.Write(w.ResponseWriter, b)
	w.bytes += int64(n)
	return n, err
}

// FlushError flushes the answer for http.ResponseController.
func (w *response) FlushError() error {
	return w.stream.Flush(http.NewResponseController(w.ResponseWriter))
}

// Hijack takes over the connection for another protocol. http.ResponseController calls it.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil && w.status == 0 {
		w.status = http.StatusSwitchingProtocols
	}
	return conn, buffer, err
}

func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
