package config

import (
	"fmt"
	"slices"

	"github.com/dustin/go-humanize/english"

	"github.com/weir-go/weir/engine"
)

// Differences returns one line for each rule or domain that envoyproxy/ratelimit would refuse or count differently.
func (c *Config) Differences() []string {
	var lines []string
	for name, d := range c.domains {
		if d.allOrNothing {
			lines = append(lines, fmt.Sprintf("%s: all_or_nothing is weir's own: the reference refuses the file", name))
		}
	}
	for _, r := range c.rules {
		if len(r.ownKeys) > 0 {
			verb := "are"
			if len(r.ownKeys) == 1 {
				verb = "is"
			}
			lines = append(lines, fmt.Sprintf("%s: %s %s weir's own: the reference refuses the file",
				r.Stat, english.OxfordWordSeries(r.ownKeys, "and"), verb))
		}
	}
	slices.Sort(lines)
	return lines
}

// ownKeys returns the keys of a limit, and of the descriptors above it, that envoyproxy/ratelimit does not have.
func ownKeys(d *Descriptor, l *RateLimit, levels []level) (keys []string) {
	for _, key := range []struct {
		name  string
		isSet bool
	}{
		{"cidr", slices.ContainsFunc(levels, func(l level) bool { return l.classKey == "cidr" })},
		{"regex", slices.ContainsFunc(levels, func(l level) bool { return l.classKey == "regex" })},
		{"rate_limits", d.hasList},
		{"algorithm", l.Algorithm != engine.NoAlgorithm},
		{"burst", l.Burst > 0},
		{"period", l.Period > 0},
		{"zone", l.zonePos != position{}},
		{"overdraw", l.Overdraw},
		{"quotas", l.Quotas != nil},
	} {
		if key.isSet {
			keys = append(keys, key.name)
		}
	}
	return keys
}
