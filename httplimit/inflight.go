package httplimit

// Release ends an allowed request whose handler has returned: limits of requests in flight ([engine.Concurrency]) get
// back what it took from them. [Middleware.Handler] calls it, and so must every caller of [Middleware.Decide] that has
// such a limit: what it does not release counts until it is forgotten. The second time, and after a refusal, it does
// nothing.
func (res *Result) Release() {
	if !res.inFlight {
		return
	}
	for i := range res.n {
		if c := res.at(i); c.limit.inFlight && c.taken == local {
			c.giveBackLocal()
			c.taken = nowhere
		}
	}
}
