package resp

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// parseInteger parses a decimal number as Redis does. A minus is permitted, but no plus, no space and no leading zero.
func parseInteger(text []byte) (n int64, ok bool) {
	digits, negative := text, false
	if len(digits) > 0 && digits[0] == '-' {
		digits, negative = digits[1:], true
	}
	switch {
	case len(digits) == 0 || len(digits) > 19:
		return 0, false
	case digits[0] == '0':
		return 0, len(digits) == 1 && !negative
	}
	var u uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		u = 10*u + uint64(c-'0') // 19 digits fit
	}
	switch {
	case negative && u <= 1<<63:
		return -int64(u), true // int64(u) is right for 2^63, too: it is -2^63, and so is its negative
	case !negative && u <= math.MaxInt64:
		return int64(u), true
	}
	return 0, false
}

// parseSeconds parses a number of seconds with a fraction, to the nanosecond.
func parseSeconds(text []byte) (d time.Duration, ok bool) {
	if len(text) == 0 || len(text) > 32 || strings.Trim(string(text), "0123456789.eE+-") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if nanos := math.Round(f * 1e9); err == nil && nanos >= 0 && nanos < math.MaxInt64 {
		return time.Duration(nanos), true
	}
	return 0, false
}
