// Package directive reads the options of directives of the Caddyfile. Each reads what follows the token that the
// dispenser is at, which is the option's name, and fails if there is anything else on the line.
package directive

import (
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// Once notes the options that a block has had.
type Once map[string]bool

// Check fails if the block has had the option before.
func (o Once) Check(d *caddyfile.Dispenser, option string) error {
	if o[option] {
		return d.Errf("%s is given twice", option)
	}
	o[option] = true
	return nil
}

// Text reads one argument.
func Text(d *caddyfile.Dispenser) (text string, err error) {
	if !d.AllArgs(&text) {
		return "", d.ArgErr()
	}
	return text, nil
}

// Nothing reads no argument.
func Nothing(d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	return nil
}

// Integer reads a whole number in a range.
func Integer(d *caddyfile.Dispenser, least, most int) (int, error) {
	option := d.Val()
	text, err := Text(d)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, d.Errf("%s %q: want a whole number from %d to %d", option, text, least, most)
	}
	return n, nil
}

// Duration reads a duration above 0, in Go's words or in days, as 90s, 1h30m and 7d.
func Duration(d *caddyfile.Dispenser) (caddy.Duration, error) {
	option := d.Val()
	text, err := Text(d)
	if err != nil {
		return 0, err
	}
	parsed, err := caddy.ParseDuration(text)
	if err != nil || parsed <= 0 {
		return 0, d.Errf("%s %q: want a duration above 0, such as 90s, 1h30m or 7d, up to %v", option, text, time.Duration(1<<63-1))
	}
	return caddy.Duration(parsed), nil
}
