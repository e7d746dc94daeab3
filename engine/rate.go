package engine

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/atomicbucket"
)

// A Rate is a number of tokens that come back in a period, spread evenly. It is between one token in 292 years and 1e9
// tokens per second. [New] checks the range, so the functions that make a Rate return no error. No limiter accepts the
// zero Rate.
type Rate struct {
	Tokens float64       // tokens that come back in a period
	Period time.Duration // 1ns or more
}

// Per returns the rate of that many tokens every period.
func Per(tokens float64, period time.Duration) Rate { return Rate{tokens, period} }

// PerSecond is shorthand for Per(tokens, time.Second).
func PerSecond(tokens float64) Rate { return Per(tokens, time.Second) }

// units has the units that may be the period of a rate, such as s in 10/s.
var units = []struct {
	name   string
	period time.Duration
}{
	{"ms", time.Millisecond},
	{"s", time.Second},
	{"m", time.Minute},
	{"h", time.Hour},
	{"d", 24 * time.Hour},
}

// ParseRate parses a rate such as 10/s: a number of tokens, a slash and a period. The period is one of the units ms, s,
// m, h and d, a number of days, or a duration that [time.ParseDuration] accepts. For other text, and for a rate out of
// range, the error quotes the text.
//
//	100/s   0.5/s   10/m   5000/h   3/d   10/1500ms   1/1h30m   1/7d
func ParseRate(s string) (Rate, error) {
	number, periodText, found := strings.Cut(s, "/")
	if !found {
		return Rate{}, fmt.Errorf("engine: rate %q: want tokens/period, such as 100/s or 10/1500ms", s)
	}
	// ParseFloat also accepts hexadecimal numbers, underscores, inf and nan, which are not allowed here.
	tokens, err := strconv.ParseFloat(number, 64)
	if err != nil || strings.Trim(number, "0123456789.eE+-") != "" {
		return Rate{}, fmt.Errorf("engine: rate %q: %q is not a number of tokens", s, number)
	}
	period, ok := parsePeriod(periodText)
	if !ok {
		return Rate{}, fmt.Errorf("engine: rate %q: %q is not a period: "+
			"want ms, s, m, h, d or a duration such as 1500ms", s, periodText)
	}
	if err := atomicbucket.CheckRate(tokens, period); err != nil {
		return Rate{}, fmt.Errorf("engine: rate %q: %w", s, err)
	}
	return Per(tokens, period), nil
}

func parsePeriod(s string) (time.Duration, bool) {
	for _, u := range units {
		if s == u.name {
			return u.period, true
		}
	}
	if days, found := strings.CutSuffix(s, "d"); found {
		n, err := strconv.ParseUint(days, 10, 16) // up to 65,535 days fit a Duration
		return time.Duration(n) * 24 * time.Hour, err == nil
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

func (r Rate) PerSecond() float64 { return r.Tokens / r.Period.Seconds() }

// String returns the rate in the form that [ParseRate] accepts.
func (r Rate) String() string {
	tokens := strconv.FormatFloat(r.Tokens, 'g', -1, 64)
	for _, u := range units {
		if r.Period == u.period {
			return tokens + "/" + u.name
		}
	}
	return tokens + "/" + r.Period.String()
}

// MarshalText returns the text of [Rate.String], or an error if [ParseRate] would not accept it, as for the zero Rate.
func (r Rate) MarshalText() ([]byte, error) {
	if err := atomicbucket.CheckRate(r.Tokens, r.Period); err != nil {
		return nil, fmt.Errorf("engine: rate %v: %w", r, err)
	}
	return []byte(r.String()), nil
}

// UnmarshalText accepts the text that [ParseRate] accepts.
func (r *Rate) UnmarshalText(text []byte) error {
	rate, err := ParseRate(string(text))
	if err != nil {
		return err
	}
	*r = rate
	return nil
}
