package spec

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/weir-go/weir/engine"
)

// A Rate is so many tokens in a period, or no number at all: [Blocked] or [Unlimited]. The zero Rate is none.
type Rate struct {
	engine.Rate
	fixed string
}

// The rates that need no counting, as they are written.
var (
	Blocked   = Rate{fixed: "0"}         // every request is refused
	Unlimited = Rate{fixed: "unlimited"} // every request is admitted
)

// ParseRate reads a rate: N/PERIOD as [engine.ParseRate] does, "0" or "unlimited".
func ParseRate(text string) (Rate, error) {
	for _, r := range []Rate{Blocked, Unlimited} {
		if text == r.fixed {
			return r, nil
		}
	}
	rate, err := engine.ParseRate(text)
	return Rate{Rate: rate}, err
}

// Of returns the rate of so many tokens.
func Of(rate engine.Rate) Rate { return Rate{Rate: rate} }

// IsFixed reports whether the rate is [Blocked] or [Unlimited].
func (r Rate) IsFixed() bool { return r.fixed != "" }

// String returns the rate as it is written.
func (r Rate) String() string {
	if r.IsFixed() {
		return r.fixed
	}
	return r.Rate.String()
}

// policy is the policy of a rate that needs no counting.
func (r Rate) policy() engine.Policy {
	if r == Unlimited {
		return engine.Unlimited()
	}
	return engine.Blocked()
}

// whole returns what to write for a rate that is no whole number of tokens in its period, "" if it is one.
func whole(r engine.Rate) (remedy string) {
	if r.Tokens() == math.Trunc(r.Tokens()) && r.Tokens() < 1<<64 {
		return ""
	}
	remedy = "write one, in a longer period"
	// The decimal number that was written, not the nearest binary one: 0.7 is seven tenths.
	tokens, ok := new(big.Rat).SetString(strconv.FormatFloat(r.Tokens(), 'g', -1, 64))
	if ok {
		if longer := new(big.Int).Mul(tokens.Denom(), big.NewInt(int64(r.Period()))); longer.IsInt64() {
			n, _ := new(big.Float).SetInt(tokens.Num()).Float64()
			remedy += fmt.Sprintf(", such as %v", engine.Per(n, time.Duration(longer.Int64())))
		}
	}
	return remedy
}
