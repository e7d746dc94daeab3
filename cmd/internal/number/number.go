// Package number formats numbers for people.
package number

import (
	"math/big"

	"github.com/dustin/go-humanize"
)

// Comma formats a number with a comma before every three digits, as in 1,234,567.
func Comma(n uint64) string { return humanize.BigComma(new(big.Int).SetUint64(n)) }
