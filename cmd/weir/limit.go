package main

import "github.com/weir-go/weir/engine"

// limitFlags are the flags that say what is limited to what, the same for every
// command. An algorithm other than the token bucket becomes a flag here.
type limitFlags struct {
	Limit   rate   `default:"1/s" placeholder:"RATE" help:"Tokens that come back to each key, such as 100/s, 10/m, 5000/h, 3/d or 10/1500ms (default: ${default})."`
	Burst   uint64 `default:"5" placeholder:"N" help:"Tokens that a full bucket holds: so many requests may come at once, 1 to 4294967296 (default: ${default})."`
	MaxKeys int    `default:"1000000" placeholder:"N" help:"Keys to have room for, at 27 bytes each; beyond that the key nearest to full is forgotten (default: ${default})."`
}

// limiter returns the engine for the flags. The caller closes it.
func (f *limitFlags) limiter(options ...engine.Option) (*engine.Limiter, error) {
	policy := engine.TokenBucket(f.Limit.Rate, f.Burst)
	limiter, err := engine.New(policy, append(options, engine.MaxKeys(f.MaxKeys))...)
	if err != nil {
		return nil, usageError{err}
	}
	return limiter, nil
}

// rate is an engine.Rate that kong can read.
type rate struct{ engine.Rate }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *rate) UnmarshalText(text []byte) (err error) {
	r.Rate, err = engine.ParseRate(string(text))
	return err
}
