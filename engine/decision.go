package engine

import (
	"math"
	"time"
)

// Never is the RetryAfter of a request that can never be admitted because it costs more than the limit.
const Never time.Duration = math.MaxInt64

// A Decision is the answer to one request.
type Decision struct {
	// Allowed says whether the request may pass.
	Allowed bool
	// Limit is the most tokens that the key can take at once: the burst of a bucket, or the limit of a window.
	Limit uint64
	// Remaining is how many whole tokens are left after this decision.
	Remaining uint64
	// RetryAfter is zero when the request is allowed, and [Never] if it costs more than the limit. Otherwise it is
	// exact: if nothing else is taken from the key, the same request is admitted after this time, and not one
	// nanosecond sooner.
	RetryAfter time.Duration
	// ResetAfter says when the key gets tokens back: the time until a bucket is full, the current window ends, or the
	// oldest request of a log leaves its window. For a bucket, it assumes that nothing else is taken. It is 0 if no
	// taken tokens of the key count any more. RetryAfter and ResetAfter are at most 292 years, the longest Duration.
	ResetAfter time.Duration
}
