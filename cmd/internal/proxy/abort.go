package proxy

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// A clientAbort ends a request whose client has gone. With ignore_client_abort, it waits until the upstream begins to
// answer, because an upstream that does not notice the closed connection continues to work. Until then, the request
// counts as in flight. After that, the upstream notices the closed connection when it sends, and its answer may be
// endless.
type clientAbort struct {
	answered atomic.Bool
	cancel   context.CancelFunc // nil if nothing is delayed
	resume   context.CancelFunc // ends the delay for a body that has broken off
}

// delayAbort returns the request for the upstream. Its context ends with the server, not with the client. If the body
// breaks off, the upstream may be working on the header, so the error of the body is delayed, too. longest bounds this
// delay, because the transport does not. The caller must call the returned function when the request has ended.
func (x *Exchange) delayAbort(r *http.Request, server context.Context, longest time.Duration) (*http.Request, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	x.abort.cancel = cancel
	x.body.delay, x.abort.resume = context.WithCancel(ctx)
	x.body.longest = longest
	forget := context.AfterFunc(x.client, func() {
		if x.abort.answered.Load() {
			cancel()
		}
	})
	unlink := context.AfterFunc(server, cancel)
	return r.WithContext(ctx), func() { forget(); unlink(); cancel() }
}

// begun ends the delay when the upstream begins to answer.
func (x *Exchange) begun() {
	if x.abort.cancel == nil {
		return
	}
	x.abort.answered.Store(true)
	x.abort.resume()
	if x.client.Err() != nil {
		x.abort.cancel()
	}
}
