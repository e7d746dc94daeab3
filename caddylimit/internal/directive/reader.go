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
func Text(to *string) Reader {
	return func(d *caddyfile.Dispenser) error {
		if !d.AllArgs(to) {
			return d.ArgErr()
		}
		return nil
	}
}

// Texts returns a Reader for one or more arguments.
func Texts(to *[]string) Reader {
	return func(d *caddyfile.Dispenser) error {
		if *to = d.RemainingArgs(); len(*to) == 0 {
			return d.ArgErr()
		}
		return nil
	}
}

// Flag returns a Reader that takes no argument and sets the flag.
func Flag(to *bool) Reader {
	return func(d *caddyfile.Dispenser) error {
		if d.NextArg() {
			return d.ArgErr()
		}
		*to = true
		return nil
	}
}

// Integer returns a Reader for a whole number in a range.
func Integer[N int | uint64](to *N, least, most N) Reader {
	return func(d *caddyfile.Dispenser) error {
		option, text := d.Val(), ""
		if err := Text(&text)(d); err != nil {
			return err
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < int64(least) || n > int64(most) {
			return d.Errf("%s %q: want a whole number from %d to %d", option, text, least, most)
		}
		*to = N(n)
		return nil
	}
}

// Fraction returns a Reader for a number in a range.
func Fraction(to *float64, least, most float64) Reader {
	return func(d *caddyfile.Dispenser) error {
		option, text := d.Val(), ""
		if err := Text(&text)(d); err != nil {
			return err
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= least && n <= most) {
			return d.Errf("%s %q: want a number from %v to %v", option, text, least, most)
		}
		*to = n
		return nil
	}
}

// Duration returns a Reader for a duration above 0, in Go's notation or in days, such as 90s, 1h30m and 7d.
func Duration(to *caddy.Duration) Reader {
	return func(d *caddyfile.Dispenser) error {
		option, text := d.Val(), ""
		if err := Text(&text)(d); err != nil {
			return err
		}
		parsed, err := caddy.ParseDuration(text)
		if err != nil || parsed <= 0 {
			return d.Errf("%s %q: want a duration above 0, such as 90s, 1h30m or 7d, up to %v", option, text, time.Duration(1<<63-1))
		}
		*to = caddy.Duration(parsed)
		return nil
	}
}

// Matchers returns a Reader for a block of matchers. The Reader adds the block as one more matcher set.
func Matchers(to *caddyhttp.RawMatcherSets) Reader {
	return func(d *caddyfile.Dispenser) error {
		set, err := caddyhttp.ParseCaddyfileNestedMatcherSet(d)
		*to = append(*to, set)
		return err
	}
}
