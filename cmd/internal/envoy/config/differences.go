package config

import (
	"fmt"
	"slices"

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
		l := r.Limit
		switch {
		case slices.ContainsFunc(r.levels, func(l level) bool { return l.isClass }):
			lines = append(lines, fmt.Sprintf("%s: cidr and regex are weir's own: the reference refuses the file", r.Stat))
		case r.IsOneOfSeveral():
			lines = append(lines, fmt.Sprintf("%s: rate_limits is weir's own: the reference refuses the file", r.Stat))
		case l.Unlimited:
		case l.Algorithm != engine.AlgorithmFixedWindow:
			lines = append(lines, fmt.Sprintf("%s: algorithm is weir's own: the reference refuses the file", r.Stat))
		case r.Overdraw:
			lines = append(lines, fmt.Sprintf("%s: overdraw is weir's own: the reference refuses the file", r.Stat))
		case l.Unit == unknownUnit:
			lines = append(lines, fmt.Sprintf("%s: period is weir's own: the reference refuses the file", r.Stat))
		}
	}
	slices.Sort(lines)
	return lines
}
