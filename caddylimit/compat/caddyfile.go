package compat

import (
	"encoding/json"
	"math"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weir-go/weir/caddylimit/internal/directive"
	"github.com/weir-go/weir/caddylimit/internal/sharing"
)

func init() { directive.Register(module, func() directive.Handler { return new(Handler) }) }

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
//		distributed {
//			read_interval  <duration>
//			write_interval <duration>
//			purge_age      <duration>
//		}
//		storage        <module...>
//		store          <address>
//		on_loss     share|closed|open
//		nodes          <machines>
//		share          <percent>
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return directive.Read(d, append([]directive.Option{
		directive.Many("zone", h.readZone),
		directive.Once("jitter", directive.Fraction(&h.Jitter, 0, maxJitter)),
		directive.Once("sweep_interval", directive.Duration(&h.SweepInterval)),
		directive.Once("log_key", directive.Flag(&h.LogKey)),
		directive.Once("disable_metrics", directive.Flag(&h.DisableMetrics)),
		directive.Once("distributed", h.readDistributed),
		directive.Once("storage", h.readStorage),
	}, sharing.Options(&h.Sharing)...)...)
}

// readDistributed reads the option by which the original shares zones. The option may have a block.
func (h *Handler) readDistributed(d *caddyfile.Dispenser) error {
	h.Distributed = new(Distributed)
	if d.NextArg() {
		return d.ArgErr()
	}
	return directive.Block(d, "distributed",
		directive.Once("read_interval", directive.Duration(&h.Distributed.ReadInterval)),
		directive.Once("write_interval", directive.Duration(&h.Distributed.WriteInterval)),
		directive.Once("purge_age", directive.Duration(&h.Distributed.PurgeAge)),
	)
}

// readStorage reads the name of a storage module, and skips its options.
func (h *Handler) readStorage(d *caddyfile.Dispenser) (err error) {
	segment := d.NextSegment()
	if len(segment) < 2 {
		return d.ArgErr()
	}
	h.Storage, err = json.Marshal(map[string]string{"module": segment[1].Text})
	return err
}

func (h *Handler) readZone(d *caddyfile.Dispenser) error {
	var name string
	if err := directive.Text(&name)(d); err != nil {
		return err
	}
	if h.RateLimits[name] != nil {
		return d.Errf("zone %q is given twice", name)
	}
	l := new(RateLimit)
	err := directive.Block(d, "a zone",
		directive.Many("match", directive.Matchers(&l.MatcherSets)),
		directive.Once("key", directive.Text(&l.Key)),
		directive.Once("window", directive.Duration(&l.Window)),
		directive.Once("events", directive.Integer(&l.MaxEvents, 1, maxEvents)),
		directive.Once("ipv4_prefix", directive.Integer(&l.IPv4Prefix, 0, 32)),
		directive.Once("ipv6_prefix", directive.Integer(&l.IPv6Prefix, 0, 128)),
		directive.Once("max_keys", directive.Integer(&l.MaxKeys, 1, math.MaxInt32)),
	)
	if err == nil && (l.Window == 0 || l.MaxEvents == 0) {
		err = d.Errf("zone %q: want both a window and events", name)
	}
	if h.RateLimits == nil {
		h.RateLimits = map[string]*RateLimit{}
	}
	h.RateLimits[name] = l
	return err
}

var _ caddyfile.Unmarshaler = (*Handler)(nil)
