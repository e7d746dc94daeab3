package proxy

import (
	"context"
	"maps"
	"net/http"
	"time"
)

// An Exchange is a request to an upstream, and its answer. A caller that has a struct for each request can include an
// Exchange in this struct, to save an allocation. The caller puts the Exchange into the request's context under
// [ExchangeKey].
type Exchange struct {
	http.ResponseWriter                 // of the client
	client              context.Context // ends when the client goes
	body                clientBody
	answer              answer
	tunnel              *tunnel // the request has become this tunnel; nil for none
	server              *member // the server to which the request was last sent; nil for none
	abort               clientAbort
	resend              resend
	forwarded           [3]string     // values of X-Forwarded fields
	sent                time.Duration // when the proxy received the request, counted from epoch
	deadline            time.Duration // deadline of a gRPC call, counted from epoch; 0 for none
}

// An answer keeps the header fields of the upstream and of the proxy's caller apart.
type answer struct {
	isWaiting    bool        // the header of the final answer has not arrived
	interim      http.Header // the header of informational answers; nil before the first
	callerFields []string    // the names of the caller's fields, if the answer may have a trailer
	body         watchedBody
}

// epoch is a fixed time. Other times are stored as durations since epoch, because a time.Time needs more memory.
var epoch = time.Now()

// ExchangeKey is the key of the Exchange in the context of a request.
type ExchangeKey struct{}

func exchangeOf(r *http.Request) *Exchange {
	x, _ := r.Context().Value(ExchangeKey{}).(*Exchange)
	return x
}

// expired reports whether the deadline of a gRPC call is over, so that its client gives up.
func (x *Exchange) expired() bool { return x.deadline != 0 && time.Since(epoch) >= x.deadline }

func (x *Exchange) setAnswered() { x.answer.isWaiting, x.answer.interim = false, nil }

// Header implements [http.ResponseWriter]. Until the final answer, it returns a separate header for informational
// answers (1xx), because ReverseProxy empties the header after each of them. So the caller's fields stay in the header
// of the final answer.
func (x *Exchange) Header() http.Header {
	if !x.answer.isWaiting {
		return x.ResponseWriter.Header()
	}
	if x.answer.interim == nil {
		x.answer.interim = http.Header{}
	}
	return x.answer.interim
}

// WriteHeader implements [http.ResponseWriter]. An informational answer, which comes before the final answer, does not
// get the caller's fields.
func (x *Exchange) WriteHeader(status int) {
	if !x.answer.isWaiting {
		x.ResponseWriter.WriteHeader(status)
		return
	}
	header := x.ResponseWriter.Header()
	callerHeader := maps.Clone(header)
	clear(header)
	maps.Copy(header, x.answer.interim)
	x.ResponseWriter.WriteHeader(status)
	clear(header)
	maps.Copy(header, callerHeader)
}

// Unwrap returns the wrapped http.ResponseWriter, for http.ResponseController.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }
