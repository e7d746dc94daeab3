package serve

import (
	"context"
	"net/http"
	"time"
)

// An exchange is a request of a client and its answer. It is the context of the request, and holds what else the proxy
// needs for it: one allocation instead of several.
type exchange struct {
	context.Context
	response
	begin    time.Time
	by       answerer
	kept     keptHeader // weir's own of the answer, of a request that is passed on
	client   clientBody
	body     watchedBody // of the upstream's answer
	tunnel   *tunnel     // that the request has become; nil for none
	server   *member     // of the upstream, that the request was last sent to; nil for none
	abort    clientAbort
	deadline time.Time // of a gRPC call; zero for none
	passed   time.Time // on to the upstream
	whole    bool      // the answer is the upstream's, to its end
}

// An answerer says where an answer comes from.
type answerer uint8

const (
	byLimits   answerer = iota // a refusal
	byUpstream                 // or the echo
	byWeir                     // an error
	answerers
)

// String returns the answerer as it is written in a label.
func (a answerer) String() string { return [answerers]string{"limits", "upstream", "weir"}[a] }

type exchangeKey struct{}

// Value implements [context.Context].
func (x *exchange) Value(key any) any {
	if key == (exchangeKey{}) {
		return x
	}
	return x.Context.Value(key)
}

// newExchange returns an exchange, and the request with it.
func newExchange(w http.ResponseWriter, r *http.Request) (*exchange, *http.Request) {
	x := &exchange{Context: r.Context(), response: response{ResponseWriter: w}, begin: time.Now()}
	return x, r.WithContext(x)
}

// exchangeOf returns the exchange of a request; nil if it is not a client's.
func exchangeOf(r *http.Request) *exchange {
	x, _ := r.Context().Value(exchangeKey{}).(*exchange)
	return x
}

// refundable reports whether the answer may give tokens back: it came from the upstream to its end, for a client that
// is still there. Otherwise a client could have its tokens back by leaving, or by provoking an answer of weir's own.
func (x *exchange) refundable() bool {
	return x != nil && x.whole && x.by == byUpstream && x.Context.Err() == nil
}

// expired reports whether the client of a gRPC call has given up, or is about to.
func (x *exchange) expired() bool { return !x.deadline.IsZero() && !time.Now().Before(x.deadline) }

// A keptHeader is the fields of a header that is cleared meanwhile. It is no map, which would be two allocations.
type keptHeader struct {
	fields []keptField
	room   [4]keptField
}

type keptField struct {
	name   string
	values []string
}

// take empties a header.
func (k *keptHeader) take(from http.Header) {
	k.fields = k.room[:0]
	for name, values := range from {
		k.fields = append(k.fields, keptField{name, values})
	}
	clear(from)
}

// giveTo puts the fields into a header, in place of those of the same names.
func (k *keptHeader) giveTo(header http.Header) {
	for _, f := range k.fields {
		header[f.name] = f.values
	}
}

// A response notes the status and the length of an answer.
type response struct {
	http.ResponseWriter
	status int // the final one; 0 if none has been written
	bytes  int64
}

// WriteHeader implements [http.ResponseWriter].
func (w *response) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
