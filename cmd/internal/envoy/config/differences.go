package config

import (
	"fmt"
	"slices"

	"github.com/weir-go/weir/engine"
)

// Differences returns one line for each rule or domain that envoyproxy/ratelimit would refuse or count differently.
func (c *Config) Differences() []string {
	var all []string
	for name, d := range c.domains {
		if d.allOrNothing {
			all = append(all, fmt.Sprintf("%s: all_or_nothing is weir's own: the reference refuses the file", name))
		}
	}
	for _, r := range c.rules {
		l := r.Limit
		switch {
		case slices.ContainsFunc(r.levels, func(l level) bool { return l.class }):
			all = append(all, fmt.Sprintf("%s: cidr and regex are weir's own: the reference refuses the file", r.Stat))
		case r.IsOneOfSeveral():
			all = append(all, fmt.Sprintf("%s: rate_limits is weir's own: the reference refuses the file", r.Stat))
		case l.Unlimited:
		case l.Algorithm != engine.AlgorithmFixedWindow:
			all = append(all, fmt.Sprintf("%s: algorithm is weir's own: the reference refuses the file", r.Stat))
		case r.Overdraw:
			all = append(all, fmt.Sprintf("%s: overdraw is weir's own: the reference refuses the file", r.Stat))
		case l.Unit == unknown:
			all = append(all, fmt.Sprintf("%s: period is weir's own: the reference refuses the file", r.Stat))
		}
	}
	slices.Sort(all)
	return all
}
