package proxy

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// A clientAbort is the end of a request whose client has gone, where ignore_client_abort delays it until the upstream
// has begun to answer. An upstream that does not notice the end of a connection works on, and the request keeps its
// place among those in flight. From the answer on the upstream would notice by what it sends, and the answer may be
// without an end.
type clientAbort struct {
	answered atomic.Bool
	cancel   context.CancelFunc // nil where nothing is delayed
	resume   context.CancelFunc // lets a body that has broken off break off
}

// delayAbort returns the request as the upstream gets it. The end of the server is not delayed. A body that breaks off
// may be a client that has gone: the upstream has the header and may be at work, so that is delayed, too; by longest at
// most, since the transport does not bound it. The caller calls the function when the request has ended.
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
