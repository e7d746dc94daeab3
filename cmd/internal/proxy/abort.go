package proxy

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// A clientAbort ends a request whose client has gone. With ignore_client_abort, it delays the end until the upstream
// has begun to answer. An upstream may not notice that a connection has ended and keep working; the request then keeps
// its place among those in flight. From the answer on there is no delay, because the upstream notices the end when it
// sends, and the answer may be endless.
type clientAbort struct {
	answered atomic.Bool
	cancel   context.CancelFunc // nil if nothing is delayed
	resume   context.CancelFunc // ends the delay of a body that has broken off
}

// delayAbort returns the request that the upstream gets. The end of the server is not delayed. If the body breaks off,
// its client may have gone while the upstream has the header and may be working. So this end is delayed, too, but at
// most by longest, because the transport does not bound it. The caller calls the function when the request has ended.
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

// begun ends the delay.
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
