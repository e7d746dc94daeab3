package caddylimit

import (
	"math"
	"strconv"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weir-go/weir/caddylimit/internal/directive"
	"github.com/weir-go/weir/caddylimit/internal/sharing"
	"github.com/weir-go/weir/limits/spec"
)

func init() { directive.Register(module, func() directive.Handler { return new(Handler) }) }

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
//			zone        <time zone>
//			concurrency <requests>
//			cost        <number or placeholder>
//			settle      <placeholder>
//			quota       <placeholder>
//			quotas {
//				file    <name>
//				hash    <name>
//				every   <duration>
//				by      <text with placeholders>
//				plan    <name> <tokens>/<period>|0|unlimited [<burst>]
//				header  <name>
//				item    <name>
//				unknown default|refuse
//				max     <tokens>
//			}
//			tiers       <placeholder> {
//				<value> <tokens>/<period>|0|unlimited [<burst>]
//			}
//			max_wait    <duration>
//			refund_status <status or range>...
//			local
//			ipv4_prefix <bits>
//			ipv6_prefix <bits>
//			shadow
//			max_keys    <number>
//			overflow    evict|refuse|admit
//		}
//		headers    ietf|legacy|draft-06...|none
//		retry_jitter <duration>
//		store      <address>
//		on_loss    share|closed|open
//		nodes      <machines>
//		share      <percent>
//		timeout    <duration>
//		log_key
//		state      <folder>
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return directive.Read(d, append([]directive.Option{
		directive.Many("limit", h.readLimit),
		directive.Once("headers", directive.Texts(&h.Headers)),
		directive.Once("retry_jitter", directive.Duration(&h.Jitter)),
		directive.Once("log_key", directive.Flag(&h.LogKey)),
		directive.Once("state", directive.Text(&h.State)),
	}, sharing.Options(&h.Sharing)...)...)
}

func (h *Handler) readLimit(d *caddyfile.Dispenser) error {
	var l Limit
	if err := directive.Text(&l.Name)(d); err != nil {
		return err
	}
	err := directive.Block(d, "a limit",
		directive.Many("match", directive.Matchers(&l.Match)),
		directive.Once("key", directive.Texts(&l.Key)),
		directive.Once("rate", directive.Text(&l.Rate)),
		directive.Once("burst", directive.Integer(&l.Burst, 1, math.MaxUint32)),
		directive.Once("algorithm", directive.Text(&l.Algorithm)),
		directive.Once("aligned", directive.Flag(&l.Aligned)),
		directive.Once("zone", directive.Text(&l.Zone)),
		directive.Once("concurrency", directive.Integer(&l.Concurrency, 1, math.MaxUint16)),
		directive.Once("cost", directive.Text(&l.Cost)),
		directive.Once("settle", directive.Text(&l.Settle)),
		directive.Once("quota", directive.Text(&l.Quota)),
		directive.Once("quotas", readQuotas(&l.Quotas)),
		directive.Once("tiers", readTiers(&l.Tiers)),
		directive.Once("max_wait", directive.Duration(&l.MaxWait)),
		directive.Once("refund_status", directive.Texts(&l.RefundStatus)),
		directive.Once("local", directive.Flag(&l.Local)),
		directive.Once("ipv4_prefix", directive.Integer(&l.IPv4Prefix, 1, 32)),
		directive.Once("ipv6_prefix", directive.Integer(&l.IPv6Prefix, 1, 128)),
		directive.Once("shadow", directive.Flag(&l.Shadow)),
		directive.Once("max_keys", directive.Integer(&l.MaxKeys, 1, math.MaxInt32)),
		directive.Once("overflow", directive.Text(&l.Overflow)),
	)
	h.Limits = append(h.Limits, l)
	return err
}

func readTiers(dst **Tiers) directive.Reader {
	return func(d *caddyfile.Dispenser) error {
		t := &Tiers{Values: map[string]Numbers{}}
		if err := directive.Text(&t.By)(d); err != nil {
			return err
		}
		*dst = t
		for nesting := d.Nesting(); d.NextBlock(nesting); {
			if err := readNumbers(d, "tier", d.Val(), d.RemainingArgs(), t.Values); err != nil {
				return err
			}
		}
		return nil
	}
}

// readNumbers reads the numbers of a tier or a plan, and stores them in the map under the name.
func readNumbers(d *caddyfile.Dispenser, kind, name string, args []string, numbers map[string]Numbers) error {
	if _, duplicate := numbers[name]; duplicate {
		return d.Errf("%s %q is given twice", kind, name)
	}
	var n Numbers
	switch len(args) {
	case 2:
		burst, err := strconv.ParseUint(args[1], 10, 32)
		if err != nil || burst == 0 {
			return d.Errf("%s %q: burst %q: want a whole number from 1 to %d", kind, name, args[1], uint32(math.MaxUint32))
		}
		n.Burst = burst
		fallthrough
	case 1:
		n.Rate = args[0]
	default:
		return d.Errf("%s %q: want a rate, such as 100/m, and a burst if it has one", kind, name)
	}
	numbers[name] = n
	return nil
}

func readQuotas(dst **Quotas) directive.Reader {
	return func(d *caddyfile.Dispenser) error {
		if d.NextArg() {
			return d.ArgErr()
		}
		q := &Quotas{}
		*dst = q
		return directive.Block(d, "quotas",
			directive.Once("file", directive.Text(&q.File)),
			directive.Once("hash", directive.Text(&q.Hash)),
			directive.Once("every", directive.Duration(&q.Every)),
			directive.Once("by", directive.Text(&q.By)),
			directive.Many("plan", func(d *caddyfile.Dispenser) error {
				args := d.RemainingArgs()
				if len(args) == 0 {
					return d.ArgErr()
				}
				if q.Plans == nil {
					q.Plans = map[string]Numbers{}
				}
				return readNumbers(d, "plan", args[0], args[1:], q.Plans)
			}),
			directive.Once("header", directive.Text(&q.Header)),
			directive.Once("item", directive.Text(&q.Item)),
			directive.Once("unknown", directive.Text(&q.Unknown)),
			directive.Once("max", directive.Integer(&q.Max, 1, spec.MaxBurst)),
		)
	}
}

var _ caddyfile.Unmarshaler = (*Handler)(nil)
