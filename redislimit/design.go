package redislimit

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
	"github.com/weir-go/weir/redislimit/internal/shares"
)

// A design contains everything about a limiter that follows from its name, policy and options.
type design struct {
	config      config
	policy      engine.Policy
	limit       *script.Limit
	terms       *lease.Terms  // nil in strict mode
	firstPolicy engine.Policy // for the first requests of keys; the zero Policy without overdraft
	sharePolicy engine.Policy // of the node's share; the zero Policy without FailShare
}

// Check returns the error that [New] would return, without a client. It makes nothing. Only New finds out whether the
// machine has enough memory for [MaxKeys] keys.
func Check(name string, policy engine.Policy, options ...Option) error {
	_, err := newDesigns(name, policy, options)
	return err
}

// CheckQuotas returns a function that checks a policy as [Limiter.Quota] would, but without a client. The function is
// not safe for concurrent use, and its errors do not name the policy. The function end frees the memory.
func CheckQuotas(name string, policy engine.Policy, options ...Option) (check func(engine.Policy) error, end func(), err error) {
	designs, err := newDesigns(name, policy, options)
	if err != nil {
		return nil, nil, err
	}
	l := &Limiter{design: designs[0]}
	l.config.maxKeys = 1
	if err := l.makeLocal(); err != nil {
		l.closeLocal()
		return nil, nil, fmt.Errorf("redislimit: %s: %w", name, err)
	}
	return func(p engine.Policy) error {
		_, err := l.Quota(p)
		if err == nil {
			return nil
		}
		return errors.New(strings.TrimPrefix(err.Error(), fmt.Sprintf("redislimit: Quota(%v): ", p)))
	}, l.closeLocal, nil
}

func isConstant(p engine.Policy) bool { return p == engine.Unlimited() || p == engine.Blocked() }

// newDesigns returns the design of a limiter, followed by the designs of its tiers. The design of a tier that is
// unlimited or blocked has no script.Limit.
func newDesigns(name string, policy engine.Policy, options []Option) ([]design, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	c, err := newConfig(name, options)
	if err != nil {
		return nil, err
	}
	base, err := newDesign(name, policy, c)
	if err != nil {
		return nil, err
	}
	designs := []design{base}
	for i, p := range c.tiers {
		if isConstant(p) {
			designs = append(designs, design{config: c, policy: p})
			continue
		}
		tier, err := newDesign(name, p, c)
		if err != nil {
			return nil, fmt.Errorf("%w (tier %d of %d)", err, i+1, len(c.tiers))
		}
		if tier.limit.Kind() != base.limit.Kind() {
			return nil, fmt.Errorf("redislimit: %s: tier %d of %d is a %v and the limit a %v: want the same algorithm and "+
				"window", name, i+1, len(c.tiers), p, policy)
		}
		designs = append(designs, tier)
	}
	return designs, nil
}

func newDesign(name string, policy engine.Policy, c config) (d design, err error) {
	d.config, d.policy = c, policy
	if d.limit, err = script.NewLimit(policy, d.config.limit); err != nil {
		return d, fmt.Errorf("redislimit: %s: %w", name, err)
	}
	if err := d.chooseMode(); err != nil {
		return d, fmt.Errorf("redislimit: %s: %w", name, err)
	}
	if d.limit.IsInFlight() {
		d.config.trust = 0 // another node may free a place at any time, so refusals are not trusted
	} else if d.config.onLoss == FailShare {
		if d.sharePolicy, err = shares.Of(policy, d.divisor()); err == nil {
			err = d.sharePolicy.Check()
		}
		if err != nil {
			return d, fmt.Errorf("redislimit: %s: a node's share: %w", name, err)
		}
	}
	return d, nil
}

func (d *design) divisor() float64 {
	if d.config.fraction > 0 {
		return 1 / d.config.fraction
	}
	return float64(d.config.nodes)
}

func (d *design) shareOptions() []engine.Option {
	options := []engine.Option{engine.MaxKeys(d.config.maxKeys), engine.ChargeRefusals(d.config.limit.Refusals)}
	if n := d.config.limit.MaxQuota; n > 0 {
		options = append(options, engine.MaxQuota(max(uint64(float64(n)/d.divisor()), 1)))
	}
	return options
}

func (d *design) chooseMode() (err error) {
	if d.limit.IsOfQuotas() || d.config.limit.MaxQuota > 0 || d.config.limit.Refusals != engine.ChargeNothing {
		if d.config.mode == Leased {
			return errors.New("the store decides about quotas and charges of refusals: want InMode(Strict) or Auto, not Leased")
		}
		return nil
	}
	if d.limit.IsInFlight() && d.config.mode == Leased {
		return errors.New("the store counts requests in flight: want InMode(Strict) or Auto, not Leased")
	}
	if d.config.mode == Strict || d.config.mode == Auto && !lease.Suits(d.policy, d.config.nodes) {
		return nil
	}
	if d.terms, err = lease.NewTerms(d.policy, d.config.nodes, d.config.overdraft); err != nil {
		return err
	}
	if d.terms.First > 0 {
		// d.first counts the first requests of a key. They must count until a charge removes them, so the window of
		// d.first is the longest possible.
		d.firstPolicy = engine.FixedWindow(d.terms.First, 365*24*time.Hour)
	}
	return nil
}
