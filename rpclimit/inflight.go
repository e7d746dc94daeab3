package rpclimit

// InFlight reports whether the call has places in limits of calls in flight ([engine.Concurrency]), which it keeps
// until [Result.Finish] or [Result.Release]. The front of a client has to call one of them also when the context of a
// stream is done, since nobody may ask for its end then.
func (res *Result) InFlight() bool { return res.inFlight && res.code == OK }

// Release gives the places of a call in flight back, and nothing else: where it is not known how the call ended, or the
// client could have broken it off. The second time, and after a refusal, it does nothing.
func (res *Result) Release() {
	if !res.inFlight {
		return
	}
	for i := range res.n {
		if c := res.at(i); c.limit.inFlight {
			c.giveBack()
		}
	}
}
