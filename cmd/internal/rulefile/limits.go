package rulefile

import (
	"cmp"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
	"github.com/weir-go/weir/redislimit"
)

type tierTexts struct {
	Header string
	tiers  []*tierText
}

// A tierText has the numbers for one value of the header.
type tierText struct {
	spec.Tier
	node  *yaml.Node
	nodes map[string]*yaml.Node
}

func (t *tierTexts) section() section {
	const hint = "want a header and the limits for some of its values"
	return section{
		name: "tiers", entries: []entry{
			newEntry("header", header, &t.Header, "", "the header whose value selects the tier of a request").required(hint),
			newEntry("values", mapOf(mapping((*tierText).section), readTiers), &t.tiers, "",
				"for each value its `rate`, `burst` or both, and its `concurrency` if the rule has one").required(hint),
		},
	}
}

func readTiers(d *decoder, n *yaml.Node, keyName string, dst *[]*tierText) {
	readNamed(d, n, keyName, dst, (*tierText).section)
}

func readPlans(d *decoder, n *yaml.Node, keyName string, dst *[]*tierText) {
	readNamed(d, n, keyName, dst, (*tierText).planSection)
}

func readNamed(d *decoder, n *yaml.Node, keyName string, dst *[]*tierText, sectionOf func(*tierText) section) {
	d.nonEmptyPairs(n, keyName, func(key, value *yaml.Node) {
		t := &tierText{Tier: spec.Tier{Name: yamlfile.Target(key).Value}}
		s := sectionOf(t)
		s.read(d, value)
		if t.nodes != nil {
			*dst = append(*dst, t)
		}
	})
}

// planSection returns the section of a plan, which must have a rate.
func (t *tierText) planSection() section {
	s := t.section()
	s.name, s.entries = fmt.Sprintf("plan %q", t.Name), s.entries[:2]
	return s
}

func (t *tierText) section() section {
	return section{
		name: fmt.Sprintf("tier %q", t.Name), minProperties: 1,
		entries: []entry{
			rateEntry(&t.Rate).withDefaultText("the rule's own"), burstEntry(&t.Burst), concurrencyEntry(&t.Concurrency).withDefaultText("the rule's own"),
		},
		check: func(_ *decoder, n *yaml.Node, nodes map[string]*yaml.Node) { t.node, t.nodes = n, nodes },
	}
}

// isBroken reports whether a number of the tier was refused.
func (t *tierText) isBroken() bool {
	return t.nodes["rate"] != nil && t.Rate == spec.Rate{} || t.nodes["burst"] != nil && t.Burst == nil ||
		t.nodes["concurrency"] != nil && t.Concurrency == 0
}

// tiersOf returns the tiers for a limit of the rule. If the limit is on requests in flight, they are only the tiers
// that have a concurrency.
func (t *ruleText) tiersOf(l *spec.Limit) (tiers []spec.Tier) {
	if t.tiers == nil {
		return nil
	}
	hasBoth := t.limit.Concurrency != 0 && t.nodes["rate"] != nil
	for _, tier := range t.tiers.tiers {
		numbers := tier.Tier
		switch {
		case tier.isBroken():
			continue
		case hasBoth && l.Concurrency != 0:
			numbers.Numbers = spec.Numbers{Concurrency: numbers.Concurrency}
		case hasBoth:
			numbers.Concurrency = 0
		}
		if hasBoth && numbers.Numbers == (spec.Numbers{}) && tier.Numbers != numbers.Numbers {
			continue
		}
		tiers = append(tiers, numbers)
	}
	return tiers
}

// resolve sets the policies of a rule from its limit, and notes mistakes. If an earlier check has refused a number, it
// does nothing.
func (t *ruleText) resolve(d *decoder, f *File, r *Rule, l spec.Limit) {
	if t.nodes["rate"] != nil && t.limit.Rate == (spec.Rate{}) || t.nodes["algorithm"] != nil && t.limit.Algorithm == engine.NoAlgorithm ||
		t.nodes["concurrency"] != nil && t.limit.Concurrency == 0 {
		return
	}
	l.MaxWait, l.Cost, l.Refund, l.Overflow, l.Spread = r.MaxWait, r.Cost.Max, len(r.Refund) > 0, r.Overflow, r.Spread
	l.Tiers = t.tiersOf(&l)
	t.addQuota(&l)
	isStored := t.isStored(d, f, &l)
	if l.Stored = isStored; isStored && l.Quota > 0 {
		l.InStore = quotasInStore(*r, f.Store)
	}
	policy, tiers, err := l.Policies()
	for _, e := range spec.ErrorsOf(err) {
		d.Fail(t.nodeOf(e, r), "%s", t.explain(e, r))
	}
	if err != nil {
		return
	}
	r.Policy = policy
	switch {
	case l.Quota > 0:
		r.Quota = t.quota.withPlans(&l, tiers)
	case t.tiers != nil && len(tiers) > 0:
		r.Tiers = newTiers(t.tiers.Header, &l, tiers)
	}
	if r.Constant = constantOf(policy); r.Constant != Counted {
		r.fillConstant()
	}
	if isStored && len(d.Errors) == 0 {
		r.Store = f.Store
		if err := redislimit.Check(r.Name, r.StorePolicy(), r.StoreOptions()...); err != nil {
			d.Fail(cmp.Or(t.nodes["store"], t.node), "store: %s", strings.ReplaceAll(err.Error(), "redislimit: ", ""))
		}
	}
}

// newTiers returns the tiers with their policies. The tiers that have a constant rate come last.
func newTiers(header string, l *spec.Limit, policies []engine.Policy) *Tiers {
	t := &Tiers{Header: header}
	var constants []string
	for i, p := range policies {
		if c := constantOf(p); c != Counted {
			constants, t.Constants = append(constants, l.Tiers[i].Name), append(t.Constants, c)
			continue
		}
		t.Values, t.Policies = append(t.Values, l.Tiers[i].Name), append(t.Policies, p)
	}
	t.Values = append(t.Values, constants...)
	return t
}

// isStored reports whether the limit is counted in the file's store.
func (t *ruleText) isStored(d *decoder, f *File, l *spec.Limit) bool {
	switch setting := t.store; {
	case setting == nil:
		return f.Store != nil && l.Counts()
	case !*setting:
		return false
	case f.Store == nil:
		d.Fail(t.nodes["store"], "store: true, but the file has no store: write for example store: redis://127.0.0.1:6379 outside the rules")
		return false
	case !l.Counts():
		d.Fail(t.nodes["store"], "store: a rate of %v needs no store: leave this out", l.Rate)
		return false
	}
	return true
}

// nodeOf returns the node of the wrong number.
func (t *ruleText) nodeOf(e *spec.Error, r *Rule) *yaml.Node {
	if e.Tier != "" {
		for _, tier := range t.tiersAndPlans() {
			if tier.Name == e.Tier {
				return cmp.Or(tier.nodes[e.Key], tier.node)
			}
		}
	}
	if r != &t.Rule {
		return t.nodes["concurrency"] // the rule is for this concurrency
	}
	return cmp.Or(t.nodes[e.Key], t.node)
}

// tiersAndPlans returns the tiers and the plans of a rule. Each has its own numbers.
func (t *ruleText) tiersAndPlans() (numbered []*tierText) {
	if t.tiers != nil {
		numbered = append(numbered, t.tiers.tiers...)
	}
	if t.quota != nil {
		numbered = append(numbered, t.quota.plans...)
	}
	return numbered
}

// explain says what is wrong with a number, and what to write instead.
func (t *ruleText) explain(e *spec.Error, r *Rule) string {
	switch {
	case e.Tier != "" && t.quota != nil:
		return fmt.Sprintf("plan %q: %s", e.Tier, e.Message)
	case e.Key == "quota" && t.quota != nil && t.quota.Header != "":
		return fmt.Sprintf("quota: a rate of %v leaves nothing to count: write a rate, and unknown: refuse", t.limit.Rate)
	case e.Key == "rate" && e.Tier == "" && t.nodes["rate"] == nil:
		return "a rule without rate: write for example rate: 10/s, or concurrency: 10 for 10 requests at a time"
	case e.Key != "store":
		return e.Error()
	}
	return "the file has a store, and " + e.Message + ": write store: false, and each machine counts separately"
}
