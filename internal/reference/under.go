package reference

// Under sets the limit for later calls. The tokens taken still count.
func (w *FixedWindow) Under(limit uint64) { w.limit = limit }

// Under sets the limit for later calls. The tokens taken still count.
func (w *SlidingWindow) Under(limit uint64) { w.limit = limit }

// Under sets the limit for later calls. The tokens taken still count.
func (l *SlidingLog) Under(limit uint64) { l.limit = limit }

// Under sets the limit for later calls. The tokens in flight stay.
func (c *Concurrency) Under(limit uint64) { c.limit = limit }
