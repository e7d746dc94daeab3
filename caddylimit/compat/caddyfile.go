package compat

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
//	rate_limit [<matcher>] {
//		zone <name> {
//			match       { <matchers> }
//			key         <text with placeholders>
//			window      <duration>
//			events      <number>
//			ipv4_prefix <bits>
//			ipv6_prefix <bits>
//			max_keys    <number>
//		}
//		jitter         <part of the wait>
//		sweep_interval <duration>
//		log_key
//		disable_metrics
//		store          <address>
//		on_failure     share|closed|open
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name of the directive
	if d.NextArg() {
		return d.ArgErr()
	}
	seen := directive.Once{}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		option := d.Val()
		if option == "zone" {
			if err := h.zone(d); err != nil {
				return err
			}
			continue
		}
		if err := seen.Check(d, option); err != nil {
			return err
		}
		var err error
		switch option {
		case "jitter":
			var text string
			if text, err = directive.Text(d); err == nil {
				if h.Jitter, err = strconv.ParseFloat(text, 64); err != nil || !(h.Jitter >= 0 && h.Jitter <= 1000) {
					err = d.Errf("jitter %q: want a part of the wait, from 0 to 1000", text)
				}
			}
		case "sweep_interval":
			h.SweepInterval, err = directive.Duration(d)
		case "log_key":
			h.LogKey, err = true, directive.Nothing(d)
		case "disable_metrics":
			h.DisableMetrics, err = true, directive.Nothing(d)
		case "store":
			h.Store, err = directive.Text(d)
		case "on_failure":
			h.OnFailure, err = directive.Text(d)
		case "distributed", "storage":
			err = d.Errf("%s: it is not here: %s", option, withoutStorage)
		default:
			err = d.Errf("unknown option %q of rate_limit: want zone, jitter, sweep_interval, log_key, disable_metrics, store or on_failure", option)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// zone reads a block of zone.
func (h *Handler) zone(d *caddyfile.Dispenser) error {
	name, err := directive.Text(d)
	if err != nil {
		return err
	}
	if h.RateLimits[name] != nil {
		return d.Errf("zone %q is given twice", name)
	}
	l := new(RateLimit)
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
			l.MatcherSets = append(l.MatcherSets, set)
		case "key":
			l.Key, err = directive.Text(d)
		case "window":
			l.Window, err = directive.Duration(d)
		case "events":
			l.MaxEvents, err = directive.Integer(d, 1, 1<<24-1)
		case "ipv4_prefix":
			l.IPv4Prefix, err = directive.Integer(d, 0, 32)
		case "ipv6_prefix":
			l.IPv6Prefix, err = directive.Integer(d, 0, 128)
		case "max_keys":
			l.MaxKeys, err = directive.Integer(d, 1, 1<<31-1)
		default:
			err = d.Errf("unknown option %q of a zone: want match, key, window, events, ipv4_prefix, ipv6_prefix or max_keys", option)
		}
		if err != nil {
			return err
		}
	}
	if l.Window == 0 || l.MaxEvents == 0 {
		return d.Errf("zone %q: want both a window and events", name)
	}
	if h.RateLimits == nil {
		h.RateLimits = map[string]*RateLimit{}
	}
	h.RateLimits[name] = l
	return nil
}

var _ caddyfile.Unmarshaler = (*Handler)(nil)
