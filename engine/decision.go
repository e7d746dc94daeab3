package engine

import (
	"math"
	"time"
)

// Never is the RetryAfter of a request that cannot pass however long it waits,
// because it costs more than a full bucket holds.
const Never time.Duration = math.MaxInt64

// A Decision is the answer to one request.
type Decision struct {
	// Allowed says whether the request may pass.
	Allowed bool
	// Limit is the most that a key can have: the burst of a bucket, the tokens of a window.
	Limit uint64
	// Remaining is how many whole tokens are left after this decision.
	Remaining uint64
	// RetryAfter is zero when the request is allowed. Otherwise it is exact: the
	// same request made that much later passes, if nothing else is taken from the
	// key meanwhile, and made one nanosecond sooner it does not. It is [Never] for
	// a request that costs more than the limit.
	RetryAfter time.Duration
	// ResetAfter is how long until a bucket is full again, if nothing else is taken; until
	// the present window ends, of a fixed window and of a sliding window counter; until the
	// oldest request leaves the window, of a log. 0 if nothing is taken. Both durations end
	// at 292 years, the longest there is.
	ResetAfter time.Duration
}
