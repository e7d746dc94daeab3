package spread

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/atomicbucket"
)

// Ahead is τ: over any time t a bucket admits at most burst + rate * (t + Ahead).
const Ahead = time.Millisecond

// MaxCells is the largest number of cells.
const MaxCells = 1<<cellBits - 1

// maxTicks is the largest debt of a bucket: an eighth of the circle.
const maxTicks = 1 << (timeBits - 3)

// Terms are the rate and the burst of a bucket, and what follows from these for a number of cells. Terms do not change
// once a bucket uses them.
type Terms struct {
	Bucket  *atomicbucket.TokenBucket
	Quota   atomicbucket.Quota
	share   uint64 // the most tokens in a cell
	cells   uint64
	maxDebt uint64 // the most that the bucket may owe because of charges, in ticks
	quarter int64  // a quarter of the circle, in nanoseconds
	source  any
	start   atomic.Int64 // the time at which these terms replaced the previous ones
}

// usualDebt is the default bound on the debt from charges, as a multiple of the limit. If the shared word has no room
// for this debt, the bound is lower.
const usualDebt = 10

// NewTerms returns the terms of a token bucket for a number of cells, a power of two up to [MaxCells]. Charges may make
// the bucket owe up to maxDebt times its limit; 0 means the default. If the shared word has no room for this debt,
// which depends on the rate, NewTerms returns an error that names the numbers. The method Source returns the argument
// source.
func NewTerms(bucket *atomicbucket.TokenBucket, cells int, maxDebt uint64, source any) (*Terms, error) {
	q := bucket.Quota()
	limit := q.Tokens * q.Token
	if maxDebt == 0 {
		maxDebt = max(min(usualDebt, maxTicks/limit), 1)
	}
	if limit > maxTicks/maxDebt {
		return nil, fmt.Errorf("a burst of %d tokens, and a debt of %d times as many, take longer to come back than a word has room for",
			q.Tokens, maxDebt)
	}
	share := bucket.Ticks(int64(Ahead)) / q.Token / uint64(cells)
	return &Terms{
		Bucket: bucket, Quota: q, share: min(share, tokenMask), cells: uint64(cells), maxDebt: limit * maxDebt,
		quarter: int64(bucket.Wait(0, halfCircle/2)), source: source,
	}, nil
}

// Share returns how many tokens a cell may have: what comes back within [Ahead], divided by the number of cells.
func (t *Terms) Share() uint64 { return t.share }

// Source returns the source that NewTerms was given.
func (t *Terms) Source() any { return t.source }

// available returns how many whole tokens a bucket has. The argument owed is the debt of the bucket in ticks, which
// must be within the limit.
func (t *Terms) available(owed uint64) uint64 {
	return (t.Quota.Tokens*t.Quota.Token - owed) / t.Quota.Token
}
