package engine

import (
	"errors"
	"fmt"

	"github.com/weir-go/weir/atomicbucket"
)

// A Policy is an algorithm with its numbers. [New] checks them. The zero Policy
// is none.
type Policy struct {
	rate  Rate
	burst uint64
}

// TokenBucket limits each key to the rate in the long run and to burst at once.
// A key's bucket starts full, a request of cost n is admitted if n tokens are in
// it, and takes them; a refused request takes nothing. Over any time t a key gets
// at most burst + rate*t through.
//
// Tokens come back continuously, not in steps, and no timer runs: the bucket is
// computed when it is asked. burst is 1 to 2^32.
//
// The form used is the generic cell rate algorithm (ITU-T I.371): 16 bytes a key. It
// is exact, to the nanosecond and for ever, for every rate whose tokens are a
// whole number of nanoseconds apart, or of halves, thirds, ... sixteenths of one,
// with a burst up to what comes back in 39 hours at the least: 100/s, 10/m and 60/s
// are such rates, 97/s is not. All others are never early and late by at most two
// nanoseconds, or by one 2^18th of a token where that is longer.
func TokenBucket(rate Rate, burst uint64) Policy { return Policy{rate, burst} }

// String returns the policy's name and numbers.
func (p Policy) String() string {
	if p == (Policy{}) {
		return "no policy"
	}
	return fmt.Sprintf("token bucket %v burst %d", p.rate, p.burst)
}

// rule checks the numbers and makes of them what the table needs.
func (p Policy) rule() (atomicbucket.TokenBucket, error) {
	if p == (Policy{}) {
		return atomicbucket.TokenBucket{}, errors.New("engine: the zero Policy limits nothing: want engine.TokenBucket(rate, burst)")
	}
	rule, err := atomicbucket.NewTokenBucket(p.rate.tokens, p.rate.period, p.burst)
	if err != nil {
		return rule, fmt.Errorf("engine: %v: %w", p, err)
	}
	return rule, nil
}
