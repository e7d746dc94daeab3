package caddylimit

import (
	"math"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weir-go/weir/caddylimit/internal/directive"
	"github.com/weir-go/weir/caddylimit/internal/sharing"
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
//		nodes      <machines>
//		share      <percent>
//		timeout    <duration>
//		log_key
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return directive.Read(d, append([]directive.Option{
		directive.Many("limit", h.readLimit),
		directive.Once("headers", directive.Texts(&h.Headers)),
		directive.Once("jitter", directive.Duration(&h.Jitter)),
		directive.Once("log_key", directive.Flag(&h.LogKey)),
	}, sharing.Options(&h.Sharing)...)...)
}

// readLimit reads a block of limit.
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
		directive.Once("concurrency", directive.Integer(&l.Concurrency, 1, math.MaxUint16)),
		directive.Once("cost", directive.Text(&l.Cost)),
		directive.Once("quota", directive.Text(&l.Quota)),
		directive.Once("ipv4_prefix", directive.Integer(&l.IPv4Prefix, 1, 32)),
		directive.Once("ipv6_prefix", directive.Integer(&l.IPv6Prefix, 1, 128)),
		directive.Once("shadow", directive.Flag(&l.Shadow)),
		directive.Once("max_keys", directive.Integer(&l.MaxKeys, 1, math.MaxInt32)),
		directive.Once("overflow", directive.Text(&l.Overflow)),
	)
	h.Limits = append(h.Limits, l)
	return err
}

var _ caddyfile.Unmarshaler = (*Handler)(nil)
