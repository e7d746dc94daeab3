package redislimit

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
	"github.com/weir-go/weir/redislimit/internal/shares"
)

// A design is all that a limiter is made by, which its name, policy and options tell without a store.
type design struct {
	config config
	policy engine.Policy
	limit  *script.Limit
	terms  *lease.Terms  // nil where the store is asked for every request
	first  engine.Policy // of the first requests of keys; the zero Policy without overdraft
	part   engine.Policy // of the node's share; the zero Policy without FailLocal
}

// Check returns the error that [New] would return for the name, the policy and the options, or nil. It needs no
// client and makes nothing: it is for a program that reads limits from a file and has to say what is wrong in it.
// Whether the machine has the memory for [MaxKeys] keys is found out by New alone.
func Check(name string, policy engine.Policy, options ...Option) error {
	_, err := newDesign(name, policy, options)
	return err
}

func newDesign(name string, policy engine.Policy, options []Option) (d design, err error) {
	if err := checkName(name); err != nil {
		return d, err
	}
	if d.config, err = newConfig(name, options); err != nil {
		return d, err
	}
	d.policy = policy
	if d.limit, err = script.NewLimit(policy); err != nil {
		return d, fmt.Errorf("redislimit: %s: %w", name, err)
	}
	if err := d.chooseMode(); err != nil {
		return d, fmt.Errorf("redislimit: %s: %w", name, err)
	}
	if d.config.onFailure == FailLocal {
		divisor := float64(d.config.nodes)
		if d.config.part > 0 {
			divisor = 1 / d.config.part
		}
		if d.part, err = shares.Of(policy, divisor); err == nil {
			err = d.part.Check()
		}
		if err != nil {
			return d, fmt.Errorf("redislimit: %s: a node's share: %w", name, err)
		}
	}
	return d, nil
}

// chooseMode sets the terms of leases, where leases are wanted.
func (d *design) chooseMode() (err error) {
	if d.config.mode == Strict || d.config.mode == Auto && !lease.Suits(d.policy, d.config.nodes) {
		return nil
	}
	if d.terms, err = lease.NewTerms(d.policy, d.config.nodes, d.config.overdraft); err != nil {
		return err
	}
	if d.terms.First > 0 {
		// Only a charge takes a first request off. A year is the longest window that there is.
		d.first = engine.FixedWindow(d.terms.First, 365*24*time.Hour)
	}
	return nil
}
