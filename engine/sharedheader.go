package engine

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/sharedfile"
)

const (
	fieldAlgorithm = "algorithm"
	fieldTiers     = "tiers"
)

// configOf parses the configuration with which a file with these fields was made, without its policies. The values are
// checked by shard.Config.SharedBytes.
func configOf(fields []sharedfile.Field) (c config, err error) {
	c.shared, c.terms.shared = "a file", true // the path does not matter
	for _, f := range fields {
		if err := c.parseField(f); err != nil {
			return config{}, fmt.Errorf("%s: the file has %q: %w", f.Name, f.Value, err)
		}
	}
	again := c.fields(policiesOf(Unlimited(), nil))
	for i, f := range fields {
		if i < len(again) && (f.Name == fieldAlgorithm || f.Name == fieldTiers) && f.Name == again[i].Name {
			again[i].Value = f.Value
		}
	}
	return c, written(fields, again)
}

// written returns an error unless a limiter of this version would write the same fields again.
func written(fields, again []sharedfile.Field) error {
	for i, f := range fields {
		if i >= len(again) || again[i] != f {
			return fmt.Errorf("%s: the file has %q, which no limiter of this program writes there", f.Name, f.Value)
		}
	}
	if len(fields) < len(again) {
		return fmt.Errorf("%s: the file has none", again[len(fields)].Name)
	}
	return nil
}

// calendarOf returns the calendar of a file with these fields, or nil if it has none.
func calendarOf(fields []sharedfile.Field) (*atomicbucket.Calendar, error) {
	for _, f := range fields {
		of, is := strings.CutPrefix(f.Value, AlgorithmFixedWindow.String()+", ")
		name, zone, isCalendar := strings.Cut(of, " of ")
		if f.Name != fieldAlgorithm || !is || !isCalendar {
			continue
		}
		zone, _, _ = strings.Cut(zone, ", rules ")
		location, err := time.LoadLocation(zone)
		if err != nil {
			return nil, fmt.Errorf("%s: the file has %q: %w", f.Name, f.Value, err)
		}
		for per := Day; per <= Month; per++ {
			if per.String() == name {
				return atomicbucket.NewCalendar(per, location)
			}
		}
	}
	return nil, nil
}

func (c *config) parseField(f sharedfile.Field) error {
	number, err := strconv.ParseUint(f.Value, 10, 63)
	option := func(o Option) error {
		if err != nil {
			return err
		}
		return o(c)
	}
	count := func(of func(int) Option) error { // in a 32-bit program, an int may be too small for the field
		n, err := strconv.Atoi(f.Value)
		if err != nil {
			return err
		}
		return of(n)(c)
	}
	switch f.Name {
	case fieldAlgorithm:
		c.inFlight = strings.HasPrefix(f.Value, AlgorithmConcurrency.String())
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
	return nil // written reports an unknown field, because it would not be written again
}
