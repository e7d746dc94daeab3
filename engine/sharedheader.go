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
	c.sharedPath, c.terms.shared = "a file", true // the path does not matter
	for _, f := range fields {
		if err := c.parseField(f); err != nil {
			return config{}, fmt.Errorf("%s: the file has %q: %w", f.Name, f.Value, err)
		}
	}
	want := c.fields(newPolicySet(Unlimited(), nil))
	for i, f := range fields {
		if i < len(want) && (f.Name == fieldAlgorithm || f.Name == fieldTiers) && f.Name == want[i].Name {
			want[i].Value = f.Value
		}
	}
	return c, checkWritten(fields, want)
}

// checkWritten returns an error unless the fields are those that a limiter of this version would write (want).
func checkWritten(fields, want []sharedfile.Field) error {
	for i, f := range fields {
		if i >= len(want) || want[i] != f {
			return fmt.Errorf("%s: the file has %q, which no limiter of this program writes there", f.Name, f.Value)
		}
	}
	if len(fields) < len(want) {
		return fmt.Errorf("%s: the file has none", want[len(fields)].Name)
	}
	return nil
}

// calendarOf returns the calendar of a file with these fields, or nil if it has none.
func calendarOf(fields []sharedfile.Field) (*atomicbucket.Calendar, error) {
	for _, f := range fields {
		text, isWindow := strings.CutPrefix(f.Value, AlgorithmFixedWindow.String()+", ")
		name, zone, isCalendar := strings.Cut(text, " of ")
		if f.Name != fieldAlgorithm || !isWindow || !isCalendar {
			continue
		}
		zone, _, _ = strings.Cut(zone, ", rules ")
		location, err := time.LoadLocation(zone)
		if err != nil {
			return nil, fmt.Errorf("%s: the file has %q: %w", f.Name, f.Value, err)
		}
		for period := Day; period <= Month; period++ {
			if period.String() == name {
				return atomicbucket.NewCalendar(period, location)
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
	// In a 32-bit program, an int may be too small for the field.
	countOption := func(newOption func(int) Option) error {
		n, err := strconv.Atoi(f.Value)
		if err != nil {
			return err
		}
		return newOption(n)(c)
	}
	switch f.Name {
	case fieldAlgorithm:
		c.inFlight = strings.HasPrefix(f.Value, AlgorithmConcurrency.String())
	case "MaxKeys":
		return countOption(MaxKeys)
	case "Shards":
		return countOption(Shards)
	case "Overflow":
		for c.overflow = Evict; c.overflow <= Admit; c.overflow++ {
			if c.overflow.String() == f.Value {
				return nil
			}
		}
		return Overflow(c.overflow)(c)
	case "hash":
		c.stableHash = strings.Contains(f.Value, "HashStable")
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
	return nil // checkWritten reports an unknown field
}
