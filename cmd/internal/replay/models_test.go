package replay

import (
	"time"

	"github.com/weir-go/weir/internal/reference"
)

// A model is an algorithm for one key, written to be trusted by looking at it: it reports
// whether a request at that Unix time in nanoseconds passes. Times do not go back.
type model func(now int64) bool

func bucketModel(limit uint64, window time.Duration) model {
	bucket := reference.NewTokenBucket(float64(limit), window, limit)
	return func(now int64) bool { return bucket.Take(now, 1) }
}

// batchModel gets limit tokens at every multiple of the window and holds twice as many.
func batchModel(limit uint64, window time.Duration) model {
	tokens, last := 2*limit, int64(0)
	return func(now int64) bool {
		index := now / int64(window)
		tokens = min(tokens+limit*uint64(index-last), 2*limit)
		last = index
		if tokens == 0 {
			return false
		}
		tokens--
		return true
	}
}

func fixedModel(limit uint64, window time.Duration) model {
	var begin int64
	var taken uint64
	return func(now int64) bool {
		if taken == 0 || now >= begin+int64(window) {
			begin, taken = now, 0
		}
		if taken == limit {
			return false
		}
		taken++
		return true
	}
}

func alignedModel(limit uint64, window time.Duration) model {
	taken := map[int64]uint64{}
	return func(now int64) bool {
		index := now / int64(window)
		if taken[index] == limit {
			return false
		}
		taken[index]++
		return true
	}
}

func counterModel(limit uint64, window time.Duration) model {
	taken := map[int64]uint64{}
	return func(now int64) bool {
		index, gone := now/int64(window), now%int64(window)
		estimate := taken[index-1]*uint64(int64(window)-gone)/uint64(window) + taken[index]
		if estimate+1 > limit {
			return false
		}
		taken[index]++
		return true
	}
}

func logModel(limit uint64, window time.Duration) model {
	var passed []int64
	return func(now int64) bool {
		inside := uint64(0)
		for _, at := range passed {
			if now-at < int64(window) {
				inside++
			}
		}
		if inside >= limit {
			return false
		}
		passed = append(passed, now)
		return true
	}
}

// worst is the most that is in any window, less the limit, from all the times of a key: a
// fullest window begins with a request.
func worst(times []int64, limit uint64, window time.Duration) uint64 {
	most := limit
	for i := range times {
		inside := uint64(0)
		for _, at := range times[i:] {
			if at-times[i] < int64(window) {
				inside++
			}
		}
		most = max(most, inside)
	}
	return most - limit
}
