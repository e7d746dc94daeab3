package limit

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/engine"
)

// Rate is an engine.Rate that kong can read.
type Rate struct{ engine.Rate }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Rate) UnmarshalText(text []byte) (err error) {
	r.Rate, err = engine.ParseRate(string(text))
	return err
}

// Whole returns the rate as so many requests in so much time. If the number is not a whole one
// the error says which longer period makes it one.
func (r Rate) Whole() (limit uint64, period time.Duration, err error) {
	tokens, period := r.parts()
	if tokens.IsInt() && tokens.Num().IsUint64() {
		return tokens.Num().Uint64(), period, nil
	}
	hint := ""
	if longer := new(big.Int).Mul(tokens.Denom(), big.NewInt(int64(period))); longer.IsInt64() {
		n, _ := new(big.Float).SetInt(tokens.Num()).Float64()
		hint = fmt.Sprintf(", such as %v", engine.Per(n, time.Duration(longer.Int64())))
	}
	return 0, 0, fmt.Errorf("write one, in a longer period%s", hint)
}

// SamePeriod reports whether two rates are so many in the same time.
func (r Rate) SamePeriod(other Rate) bool {
	_, a := r.parts()
	_, b := other.parts()
	return a == b
}

// whole is Whole for a flag of something that counts whole requests.
func (r Rate) whole(what string) (limit uint64, period time.Duration, err error) {
	limit, period, err = r.Whole()
	if err != nil {
		return 0, 0, Misuse("--limit %v: a %s wants a whole number of requests: %w", r, what, err)
	}
	return limit, period, nil
}

// parts reads the number of tokens and the period back from the rate's text, which is the
// only thing it tells: a decimal number, a slash, and a unit or a duration.
func (r Rate) parts() (*big.Rat, time.Duration) {
	number, text, _ := strings.Cut(r.String(), "/")
	tokens, ok := new(big.Rat).SetString(number)
	if !ok {
		panic("weir: no number of tokens in the rate " + strconv.Quote(r.String()))
	}
	if text == "d" {
		return tokens, 24 * time.Hour
	}
	if !strings.ContainsAny(text, "0123456789") {
		text = "1" + text // a bare unit
	}
	period, err := time.ParseDuration(text)
	if err != nil {
		panic("weir: no period in the rate " + strconv.Quote(r.String()))
	}
	return tokens, period
}
