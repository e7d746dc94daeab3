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
const MaxCells = 1<<whoBits - 1

// maxTicks is the most that a bucket may owe: an eighth of the circle.
const maxTicks = 1 << (timeBits - 3)

// Terms are a bucket's numbers for so many cells. They do not change once a bucket has them.
type Terms struct {
	Bucket  *atomicbucket.TokenBucket
	Quota   atomicbucket.Quota
	share   uint64 // the most tokens in a cell
	cells   uint64
	debt    uint64 // the most that the bucket may owe by charges, in ticks
	quarter int64  // of the circle, in nanoseconds
	source  any
	begin   atomic.Int64 // the time at which they replaced others
}

// usualDebt is how many limits a bucket may owe by charges if nothing else is said and the word can tell so much.
const usualDebt = 10

// NewTerms returns the terms of a token bucket, for so many cells, whose charges may make it owe so many limits; 0 for
// what is usual. source is whatever the caller wants to find in them. A bucket that may owe more than the word can
// tell is an error that names the number. The range depends on the rate.
func NewTerms(bucket *atomicbucket.TokenBucket, cells int, maxDebt uint64, source any) (*Terms, error) {
	q := bucket.Quota()
	limit := q.Tokens * q.Token
	if maxDebt == 0 {
		maxDebt = max(min(usualDebt, maxTicks/limit), 1)
	}
	if limit > maxTicks/maxDebt {
		return nil, fmt.Errorf("a burst of %d tokens, and a debt of %d times as many, take longer to come back than a word can tell",
			q.Tokens, maxDebt)
	}
	share := bucket.Ticks(int64(Ahead)) / q.Token / uint64(cells)
	return &Terms{
		Bucket: bucket, Quota: q, share: min(share, tokenMask), cells: uint64(cells), debt: limit * maxDebt,
		quarter: int64(bucket.Wait(0, narrow/2)), source: source,
	}, nil
}

// Share returns how many tokens a cell may hold: those that come back within [Ahead], divided by the cells.
func (t *Terms) Share() uint64 { return t.share }

// Source returns what NewTerms was given.
func (t *Terms) Source() any { return t.source }

// spare returns the whole tokens in a bucket that owes so much, the limit at most.
func (t *Terms) spare(owed uint64) uint64 {
	return (t.Quota.Tokens*t.Quota.Token - owed) / t.Quota.Token
}
