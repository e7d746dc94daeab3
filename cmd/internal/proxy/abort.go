package proxy

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// A clientAbort ends a request whose client has gone. With ignore_client_abort, the request ends only when the upstream
// begins to answer, and counts as in flight until then. The reason is that the upstream may not notice a closed
// connection, and continue to work.
//
// Once the upstream answers, the request ends at once. The upstream notices a closed connection when it sends, and its
// answer may be endless.
type clientAbort struct {
	answered atomic.Bool
	cancel   context.CancelFunc // nil without ignore_client_abort
	resume   context.CancelFunc // ends the delay for a body that has broken off
}

// delayAbort returns the request for the upstream. The context of this request ends with the server, not with the
// client. The caller must call the returned function when the request has ended.
//
// If the body of the request breaks off, its error is delayed, too, because the upstream may already work on the
// header. The transport does not bound this delay, so maxDelay does.
func (x *Exchange) delayAbort(r *http.Request, server context.Context, maxDelay time.Duration) (*http.Request, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	x.abort.cancel = cancel
	x.body.delay, x.abort.resume = context.WithCancel(ctx)
	x.body.maxDelay = maxDelay
	stopClient := context.AfterFunc(x.client, func() {
		if x.abort.answered.Load() {
			cancel()
		}
	})
	stopServer := context.AfterFunc(server, cancel)
	return r.WithContext(ctx), func() { stopClient(); stopServer(); cancel() }
}

// endAbortDelay ends the delay when the upstream begins to answer.
func (x *Exchange) endAbortDelay() {
	if x.abort.cancel == nil {
		return
	}
	x.abort.answered.Store(true)
	x.abort.resume()
	if x.client.Err() != nil {
		x.abort.cancel()
	}
}
