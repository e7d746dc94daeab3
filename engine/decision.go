package engine

import (
	"math"
	"time"
)

// Never is the RetryAfter of a request that can never pass, because it costs more than a full bucket holds.
const Never time.Duration = math.MaxInt64

// A Decision is the answer to one request.
type Decision struct {
	// Allowed says whether the request may pass.
	Allowed bool
	// Limit is the most that a key can have: the burst of a bucket, the tokens of a window.
	Limit uint64
	// Remaining is how many whole tokens are left after this decision.
	Remaining uint64
	// RetryAfter is zero when the request is allowed. Otherwise it is exact. If nothing else is taken from the key
	// meanwhile, the same request passes after exactly this time, and not one nanosecond sooner. It is [Never] for a
	// request that costs more than the limit.
	RetryAfter time.Duration
	// ResetAfter is the time until a bucket is full again if nothing else is taken, until the current window of a fixed
	// window or of a sliding window counter ends, or until the oldest request leaves the window of a log. It is 0 if
	// nothing is taken. Both durations are at most 292 years, the longest Duration.
	ResetAfter time.Duration
}
