package caddylimit

import (
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weir-go/weir/caddylimit/internal/directive"
)

func init() {
	httpcaddyfile.RegisterHandlerDirective(module, func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		handler := new(Handler)
		return handler, handler.UnmarshalCaddyfile(h.Dispenser)
	})
	httpcaddyfile.RegisterDirectiveOrder(module, httpcaddyfile.Before, "basic_auth")
}

// UnmarshalCaddyfile reads the directive:
//
//	weir [<matcher>] {
//		limit <name> {
//			match       { <matchers> }
//			key         <text with placeholders>...
//			rate        <tokens>/<period>
//			burst       <tokens>
//			algorithm   <name>
//			aligned
//			concurrency <requests>
//			cost        <number or placeholder>
//			quota       <placeholder>
//			ipv4_prefix <bits>
//			ipv6_prefix <bits>
//			shadow
//			max_keys    <number>
//			overflow    evict|refuse|admit
//		}
//		headers    ietf|legacy|draft06...|off
//		jitter     <duration>
//		store      <address>
//		on_failure share|closed|open
//		log_key
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name of the directive
	if d.NextArg() {
		return d.ArgErr()
	}
	seen := directive.Once{}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		option := d.Val()
		if option == "limit" {
			var l Limit
			if err := l.unmarshal(d); err != nil {
				return err
			}
			h.Limits = append(h.Limits, l)
			continue
		}
		if err := seen.Check(d, option); err != nil {
			return err
		}
		var err error
		switch option {
		case "headers":
			if h.Headers = d.RemainingArgs(); len(h.Headers) == 0 {
				err = d.ArgErr()
			}
		case "jitter":
			h.Jitter, err = directive.Duration(d)
		case "store":
			h.Store, err = directive.Text(d)
		case "on_failure":
			h.OnFailure, err = directive.Text(d)
		case "log_key":
			h.LogKey, err = true, directive.Nothing(d)
		default:
			err = d.Errf("unknown option %q of weir: want limit, headers, jitter, store, on_failure or log_key", option)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unmarshal reads a block of limit.
func (l *Limit) unmarshal(d *caddyfile.Dispenser) (err error) {
	if l.Name, err = directive.Text(d); err != nil {
		return err
	}
	seen := directive.Once{}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		option := d.Val()
		if option != "match" {
			if err := seen.Check(d, option); err != nil {
				return err
			}
		}
		switch option {
		case "match":
			var set caddy.ModuleMap
			set, err = caddyhttp.ParseCaddyfileNestedMatcherSet(d)
			l.Match = append(l.Match, set)
		case "key":
			if l.Key = d.RemainingArgs(); len(l.Key) == 0 {
				err = d.ArgErr()
			}
		case "rate":
			l.Rate, err = directive.Text(d)
		case "algorithm":
			l.Algorithm, err = directive.Text(d)
		case "cost":
			l.Cost, err = directive.Text(d)
		case "quota":
			l.Quota, err = directive.Text(d)
		case "overflow":
			l.Overflow, err = directive.Text(d)
		case "burst":
			l.Burst, err = number(d)
		case "concurrency":
			l.Concurrency, err = number(d)
		case "ipv4_prefix":
			l.IPv4Prefix, err = directive.Integer(d, 1, 32)
		case "ipv6_prefix":
			l.IPv6Prefix, err = directive.Integer(d, 1, 128)
		case "max_keys":
			l.MaxKeys, err = directive.Integer(d, 1, 1<<31-1)
		case "aligned":
			l.Aligned, err = true, directive.Nothing(d)
		case "shadow":
			l.Shadow, err = true, directive.Nothing(d)
		default:
			err = d.Errf("unknown option %q of a limit: want match, key, rate, burst, algorithm, aligned, concurrency, cost, "+
				"quota, ipv4_prefix, ipv6_prefix, shadow, max_keys or overflow", option)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// number reads a number of tokens or requests.
func number(d *caddyfile.Dispenser) (uint64, error) {
	option := d.Val()
	text, err := directive.Text(d)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 {
		return 0, d.Errf("%s %q: want a whole number from 1 to 4294967295", option, text)
	}
	return n, nil
}

var (
	_ caddyfile.Unmarshaler = (*Handler)(nil)
)
