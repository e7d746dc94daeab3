package engine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/sharedfile"
)

// Names of fields that are not options.
const (
	fieldPolicy = "policy"
	fieldTiers  = "tiers"
)

// isTier reports whether a field is the policy of a tier.
func isTier(name string) bool { return strings.HasPrefix(name, "tier ") }

// configOf returns the configuration and the policies of which a file has these fields. What they say is not checked
// beyond that: policies.plan and shard.Config.SharedBytes do so.
func configOf(fields []sharedfile.Field) (c config, all policies, err error) {
	c.shared = "a file" // which one plays no part
	var own []Policy
	for _, f := range fields {
		var p Policy
		switch {
		case f.Name == fieldPolicy || isTier(f.Name):
			if p, err = parsePolicy(f.Value); err == nil {
				own = append(own, p)
			}
		default:
			err = c.parseField(f)
		}
		if err != nil {
			return config{}, policies{}, fmt.Errorf("%s: the file has %q: %w", f.Name, f.Value, err)
		}
	}
	if len(own) < 1 {
		return config{}, policies{}, errors.New("policy: the file has none")
	}
	if err := checkTiers(own[1:]); err != nil {
		return config{}, policies{}, err
	}
	all = policiesOf(own[0], own[1:])
	// What is written again is what was read, or the file is of another version.
	again := c.fields(all)
	for i, f := range fields {
		if i >= len(again) || again[i] != f {
			return config{}, policies{}, fmt.Errorf("%s: the file has %q, which no limiter of this program writes there", f.Name, f.Value)
		}
	}
	if len(fields) < len(again) {
		return config{}, policies{}, fmt.Errorf("%s: the file has none", again[len(fields)].Name)
	}
	return c, all, nil
}

// parseField enters the field of an option.
func (c *config) parseField(f sharedfile.Field) error {
	number, err := strconv.ParseUint(f.Value, 10, 63)
	option := func(o Option) error {
		if err != nil {
			return err
		}
		return o(c)
	}
	count := func(of func(int) Option) error { // an int of a 32-bit program holds less than the file
		n, err := strconv.Atoi(f.Value)
		if err != nil {
			return err
		}
		return of(n)(c)
	}
	switch f.Name {
	case "MaxKeys":
		return count(MaxKeys)
	case "Shards":
		return count(Shards)
	case "Overflow":
		for c.overflow = Evict; c.overflow <= Admit; c.overflow++ {
			if c.overflow.String() == f.Value {
				return nil
			}
		}
		return Overflow(c.overflow)(c)
	case "hash":
		c.stable = strings.Contains(f.Value, "HashStable")
	case "time":
		if strings.Contains(f.Value, "ClockFunc") {
			c.clock = clockFunc
		}
	case "MaxQuota":
		c.terms.maxQuota = number
		return err
	case "MaxDebt":
		c.terms.maxDebt = number
		return err
	case "ChargeRefusals":
		return option(ChargeRefusals(RefusalCharge(min(number, uint64(ChargePenalty)+1))))
	}
	return nil // a field that is none is not written again
}

// parsePolicy reads what [Policy.exactly] writes.
func parsePolicy(text string) (p Policy, err error) {
	name, numbers, _ := strings.Cut(strings.TrimSuffix(text, "]"), " [")
	n := strings.FieldsFunc(numbers, func(r rune) bool { return r == ' ' || r == '/' })
	if len(n) != 5 {
		return Policy{}, errors.New("want five numbers in brackets")
	}
	tokens, err := strconv.ParseFloat(n[0], 64)
	if err != nil {
		return Policy{}, err
	}
	period, err := strconv.ParseInt(n[1], 10, 64)
	if err != nil {
		return Policy{}, err
	}
	if p.limit, err = strconv.ParseUint(n[2], 10, 64); err != nil {
		return Policy{}, err
	}
	if p.refill, err = strconv.ParseUint(n[3], 10, 64); err != nil {
		return Policy{}, err
	}
	window, err := strconv.ParseInt(n[4], 10, 64)
	if err != nil {
		return Policy{}, err
	}
	p.rate, p.window = Rate{tokens, time.Duration(period)}, time.Duration(window)
	p.aligned = strings.HasSuffix(name, ", aligned")
	switch {
	case name == Unlimited().String():
		p.grant = grantsAll
	case name == Blocked().String():
		p.grant = grantsNone
	case strings.HasPrefix(name, "token buckets "):
		p.algorithm, p.grant = AlgorithmTokenBucket, grantsQuotas
	default:
		for _, a := range Algorithms() {
			if strings.HasPrefix(name, a.String()+" ") {
				p.algorithm = a
			}
		}
		if p.algorithm == NoAlgorithm {
			return Policy{}, errors.New("no policy of this program begins like that")
		}
	}
	return p, nil
}
