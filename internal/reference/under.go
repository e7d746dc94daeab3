package reference

// Under holds the calls that follow against another limit. What was taken stays what it is.
func (w *FixedWindow) Under(limit uint64) { w.limit = limit }

// Under holds the calls that follow against another limit. What was taken stays what it is.
func (w *SlidingWindow) Under(limit uint64) { w.limit = limit }

// Under holds the calls that follow against another limit. What was taken stays what it is.
func (l *SlidingLog) Under(limit uint64) { l.limit = limit }

// Under holds the calls that follow against another limit. What is in flight stays so.
func (c *Concurrency) Under(limit uint64) { c.limit = limit }
