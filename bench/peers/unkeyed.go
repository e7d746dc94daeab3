package peers

import (
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/juju/ratelimit"
	uber "go.uber.org/ratelimit"
)

var uberUnkeyed = Peer{
	Name:    "uber-go/ratelimit (un-keyed)",
	Module:  "go.uber.org/ratelimit",
	Package: true,
	How:     "New with the tokens of a period; Take waits, which at a token a nanosecond it need not",
	New: func(limit Limit, _ int) (Limiter, error) {
		l := uber.New(limit.Tokens, uber.Per(limit.Per))
		return allow(func(string) bool { l.Take(); return true }), nil
	},
	Cannot: map[Ability]string{Keys: noKeys, Refuse: "it waits, it never says no", Cost: "a request is one token"},
}

var jujuUnkeyed = Peer{
	Name:    "juju/ratelimit (un-keyed)",
	Module:  "github.com/juju/ratelimit",
	Package: true,
	How:     "a Bucket that is filled by one token at a time",
	New: func(limit Limit, _ int) (Limiter, error) {
		b := ratelimit.NewBucket(limit.every(), int64(limit.Burst))
		return allow(func(string) bool { return b.TakeAvailable(1) == 1 }), nil
	},
	Cannot: map[Ability]string{Keys: noKeys, Cost: "TakeAvailable takes what there is, less than was asked for"},
}

var failsafeUnkeyed = Peer{
	Name:    "failsafe-go (un-keyed)",
	Module:  "github.com/failsafe-go/failsafe-go",
	Package: true,
	How:     "a bursty RateLimiter, which counts in periods, and TryAcquirePermit",
	New: func(limit Limit, _ int) (Limiter, error) {
		l := ratelimiter.NewBursty[any](uint(limit.Tokens), limit.Per)
		return allow(func(string) bool { return l.TryAcquirePermit() }), nil
	},
	Cannot: map[Ability]string{Keys: noKeys},
}
