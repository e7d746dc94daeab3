package spec

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/engine"
)

// A Rate is a number of tokens in a period, or one of the fixed rates [Blocked] and [Unlimited]. The zero Rate means
// that no rate is set. With a period of the calendar ([Rate.Calendar]), the embedded [engine.Rate] has 1, 7 or 31 days.
type Rate struct {
	engine.Rate
	fixed    string
	calendar engine.Period
}

// These rates need no counting.
var (
	Blocked   = Rate{fixed: "0"}         // every request is refused
	Unlimited = Rate{fixed: "unlimited"} // every request is admitted
)

// ParseRate parses a rate: N/PERIOD as in [engine.ParseRate]; N/day, N/week or N/month of the calendar; "0"; or
// "unlimited".
func ParseRate(text string) (Rate, error) {
	for _, r := range []Rate{Blocked, Unlimited} {
		if text == r.fixed {
			return r, nil
		}
	}
	number, periodText, _ := strings.Cut(text, "/")
	for _, period := range []engine.Period{engine.Day, engine.Week, engine.Month} {
		if periodText != period.String() {
			continue
		}
		rate, err := engine.ParseRate(number + "/" + period.Longest().String())
		if err != nil {
			return Rate{}, fmt.Errorf("rate %q: want a number of tokens up to 1e9 a second, such as 1000/%v", text, period)
		}
		return Rate{Rate: rate, calendar: period}, nil
	}
	rate, err := engine.ParseRate(text)
	if _, periodErr := engine.ParseRate("1/" + periodText); err != nil && periodErr != nil && periodText != "" {
		err = fmt.Errorf("rate %q: %q is not a period: want ms, s, m, h, d, a duration such as 1500ms, or the day, week or "+
			"month of the calendar", text, periodText)
	}
	return Rate{Rate: rate}, err
}

// Of returns the Rate of an [engine.Rate].
func Of(rate engine.Rate) Rate { return Rate{Rate: rate} }

// Calendar returns the calendar period of the rate. ok is false if it has none.
func (r Rate) Calendar() (period engine.Period, ok bool) { return r.calendar, r.calendar != 0 }

// IsFixed reports whether the rate is [Blocked] or [Unlimited].
func (r Rate) IsFixed() bool { return r.fixed != "" }

// String returns the rate in the form that [ParseRate] reads.
func (r Rate) String() string {
	if r.IsFixed() {
		return r.fixed
	}
	text := r.Rate.String()
	if period, ok := r.Calendar(); ok {
		text = text[:strings.IndexByte(text, '/')+1] + period.String()
	}
	return text
}

func (r Rate) policy() engine.Policy {
	if r == Unlimited {
		return engine.Unlimited()
	}
	return engine.Blocked()
}

// wholeRemedy returns "" if the rate gives a whole number of tokens in its period. Otherwise remedy is advice to write
// a rate with a whole number of tokens, with an example.
func wholeRemedy(r engine.Rate) (remedy string) {
	if r.Tokens == math.Trunc(r.Tokens) && r.Tokens < 1<<64 {
		return ""
	}
	remedy = "write one, in a longer period"
	// 0.7 is seven tenths, as it was written, and not the nearest binary number.
	tokens, ok := new(big.Rat).SetString(strconv.FormatFloat(r.Tokens, 'g', -1, 64))
	if ok {
		if longer := new(big.Int).Mul(tokens.Denom(), big.NewInt(int64(r.Period))); longer.IsInt64() {
			n, _ := new(big.Float).SetInt(tokens.Num()).Float64()
			remedy += fmt.Sprintf(", such as %v", engine.Per(n, time.Duration(longer.Int64())))
		}
	}
	return remedy
}
