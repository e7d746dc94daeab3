package directive

import (
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// A Reader reads the arguments of the current option, and returns an error for other arguments.
type Reader func(d *caddyfile.Dispenser) error

// Text returns a Reader for one argument.
func Text(dst *string) Reader {
	return func(d *caddyfile.Dispenser) error {
		if !d.AllArgs(dst) {
			return d.ArgErr()
		}
		return nil
	}
}

// Texts returns a Reader for one or more arguments.
func Texts(dst *[]string) Reader {
	return func(d *caddyfile.Dispenser) error {
		if *dst = d.RemainingArgs(); len(*dst) == 0 {
			return d.ArgErr()
		}
		return nil
	}
}

// Flag returns a Reader that takes no argument and sets the flag.
func Flag(dst *bool) Reader {
	return func(d *caddyfile.Dispenser) error {
		if d.NextArg() {
			return d.ArgErr()
		}
		*dst = true
		return nil
	}
}

// Integer returns a Reader for a whole number in a range.
func Integer[N int | uint64](dst *N, minimum, maximum N) Reader {
	return func(d *caddyfile.Dispenser) error {
		option, text := d.Val(), ""
		if err := Text(&text)(d); err != nil {
			return err
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < int64(minimum) || n > int64(maximum) {
			return d.Errf("%s %q: want a whole number from %d to %d", option, text, minimum, maximum)
		}
		*dst = N(n)
		return nil
	}
}

// Fraction returns a Reader for a number in a range.
func Fraction(dst *float64, minimum, maximum float64) Reader {
	return func(d *caddyfile.Dispenser) error {
		option, text := d.Val(), ""
		if err := Text(&text)(d); err != nil {
			return err
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= minimum && n <= maximum) {
			return d.Errf("%s %q: want a number from %v to %v", option, text, minimum, maximum)
		}
		*dst = n
		return nil
	}
}

// Duration returns a Reader for a duration above 0, in Go's notation or in days, such as 90s, 1h30m and 7d.
func Duration(dst *caddy.Duration) Reader {
	return func(d *caddyfile.Dispenser) error {
		option, text := d.Val(), ""
		if err := Text(&text)(d); err != nil {
			return err
		}
		parsed, err := caddy.ParseDuration(text)
		if err != nil || parsed <= 0 {
			return d.Errf("%s %q: want a duration above 0, such as 90s, 1h30m or 7d, up to %v", option, text, time.Duration(1<<63-1))
		}
		*dst = caddy.Duration(parsed)
		return nil
	}
}

// Matchers returns a Reader for a block of matchers. The Reader adds the block as one more matcher set.
func Matchers(dst *caddyhttp.RawMatcherSets) Reader {
	return func(d *caddyfile.Dispenser) error {
		set, err := caddyhttp.ParseCaddyfileNestedMatcherSet(d)
		*dst = append(*dst, set)
		return err
	}
}
