package proxy

import (
	"context"
	"maps"
	"net/http"
	"time"
)

// An Exchange is a request on its way to an upstream, and its answer. The caller may put a zero Exchange into the
// context of the request, under [ExchangeKey]. If this Exchange is part of a struct that the caller allocates for each
// request in any case, no other allocation is needed.
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

// An answer separates the header fields of the upstream's answer from the fields of the caller.
type answer struct {
	waiting bool        // the header of the final answer has not arrived
	interim http.Header // the header of informational answers; nil before the first
	own     []string    // the names of the caller's fields, if the answer may have a trailer
	body    watchedBody
}

// epoch is the start of times that are stored as durations. They are stored like this because a time.Time is larger.
var epoch = time.Now()

// ExchangeKey is the key of the Exchange in the context of a request.
type ExchangeKey struct{}

// exchangeOf returns the exchange of a request; nil if it has none.
func exchangeOf(r *http.Request) *Exchange {
	x, _ := r.Context().Value(ExchangeKey{}).(*Exchange)
	return x
}

// expired reports whether the deadline of a gRPC call is over. The client has then given up, or is about to give up.
func (x *Exchange) expired() bool { return x.deadline != 0 && time.Since(epoch) >= x.deadline }

// answered notes that the header of the final answer has arrived.
func (x *Exchange) answered() { x.answer.waiting, x.answer.interim = false, nil }

// Header implements [http.ResponseWriter]. Until the header of the final answer has arrived, it returns the header for
// informational answers (1xx). ReverseProxy empties this header after each of these answers. The caller has already set
// its fields in the header of the final answer, where they stay.
func (x *Exchange) Header() http.Header {
	if !x.answer.waiting {
		return x.ResponseWriter.Header()
	}
	if x.answer.interim == nil {
		x.answer.interim = http.Header{}
	}
	return x.answer.interim
}

// WriteHeader implements [http.ResponseWriter]. Until the header of the final answer has arrived, it writes
// informational answers, without the fields that the caller has set.
func (x *Exchange) WriteHeader(status int) {
	if !x.answer.waiting {
		x.ResponseWriter.WriteHeader(status)
		return
	}
	header := x.ResponseWriter.Header()
	own := maps.Clone(header)
	clear(header)
	maps.Copy(header, x.answer.interim)
	x.ResponseWriter.WriteHeader(status)
	clear(header)
	maps.Copy(header, own)
}

// Unwrap returns the wrapped http.ResponseWriter, for http.ResponseController.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }
