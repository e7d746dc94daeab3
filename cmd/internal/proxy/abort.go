package proxy

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// A clientAbort ends a request whose client has gone. With ignore_client_abort, it delays the end until the upstream
// has begun to answer. The reason is that an upstream may not notice the end of the connection and may continue to
// work. The request therefore still counts as in flight. When the upstream has begun to answer, the end is not delayed
// any more: the upstream notices the end of the connection when it sends, and the answer may be endless.
type clientAbort struct {
	answered atomic.Bool
	cancel   context.CancelFunc // nil if nothing is delayed
	resume   context.CancelFunc // ends the delay for a body that has broken off
}

// delayAbort returns the request for the upstream. Its context does not end when the client goes, but when the server
// ends. If the body breaks off, the client may have gone while the upstream has the header and may be working. So the
// error of the body is also delayed. The parameter longest bounds this delay, because the transport does not bound it.
// The caller must call the returned function when the request has ended.
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

// begun ends the delay, because the upstream has begun to answer.
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
