package proxy

import (
	"context"
	"maps"
	"net/http"
	"time"
)

// An Exchange is a request on its way to an upstream, and its answer. The caller may provide a zero Exchange in the
// request's context under [ExchangeKey]. If it is part of a struct that the caller allocates for each request anyway,
// this saves an allocation.
type Exchange struct {
	http.ResponseWriter                 // of the client
	client              context.Context // ends when the client goes
	body                clientBody
	answer              answer
	tunnel              *tunnel // the request has become this tunnel; nil for none
	server              *member // the server to which the request was last sent; nil for none
	abort               clientAbort
	resend              resend
	sent                time.Duration // when the proxy got it, counted from epoch
	deadline            time.Duration // of a gRPC call, counted from epoch; 0 for none
}

// An answer separates the fields of an upstream's answer from the caller's own fields.
type answer struct {
	waiting bool        // for its header
	interim http.Header // the header of informational answers; nil before the first
	own     []string    // the names of the caller's fields, if the answer may have a trailer
	body    watchedBody
}

// epoch is the origin of times that are stored as durations, which are smaller than a time.Time.
var epoch = time.Now()

// ExchangeKey is the key of the Exchange in the context of a request.
type ExchangeKey struct{}

// exchangeOf returns the exchange of a request; nil if it has none.
func exchangeOf(r *http.Request) *Exchange {
	x, _ := r.Context().Value(ExchangeKey{}).(*Exchange)
	return x
}

// expired reports whether the client of a gRPC call has given up, or is about to.
func (x *Exchange) expired() bool { return x.deadline != 0 && time.Since(epoch) >= x.deadline }

// answered ends the wait.
func (x *Exchange) answered() { x.answer.waiting, x.answer.interim = false, nil }

// Header implements [http.ResponseWriter]. While the exchange waits, it returns the header of informational answers
// (1xx), which ReverseProxy empties after each. The caller's own fields are in the header of the final answer by then,
// and stay there.
func (x *Exchange) Header() http.Header {
	if !x.answer.waiting {
		return x.ResponseWriter.Header()
	}
	if x.answer.interim == nil {
		x.answer.interim = http.Header{}
	}
	return x.answer.interim
}

// WriteHeader implements [http.ResponseWriter]. While the exchange waits, it writes an informational answer, without
// the caller's own fields.
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

// Unwrap is for http.ResponseController.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }
