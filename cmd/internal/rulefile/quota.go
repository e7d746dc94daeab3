package rulefile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// A Quota says where the numbers of a request come from, if they do not come from the rule.
type Quota struct {
	File    string     // with the limits of many keys
	By      KeyPart    // what is looked up there
	Unknown UnknownKey // what becomes of a request whose key it does not have
	Plans   []Plan     // that it names, in their order
	Max     uint64     // tokens of a limit from outside

	limit spec.Limit // of which the file has numbers
}

// A Plan is a limit that a file of limits can name.
type Plan struct {
	Name   string
	Policy engine.Policy
}

// UnknownKey says what happens to a request whose key is not in the file of limits.
type UnknownKey string

// What UnknownKey can be.
const (
	UnknownDefault UnknownKey = "default" // it has the rule's own numbers
	UnknownRefuse  UnknownKey = "refuse"  // it is refused, as by a rate of 0
)

// Numbers returns a checker of the file's numbers. The caller closes it.
func (q *Quota) Numbers() (*spec.Quotas, error) { return q.limit.Quotas() }

// A quotaText is a quota as it is written.
type quotaText struct {
	Quota
	plans []*tierText
	at    *yaml.Node
	seen  map[string]*yaml.Node
}

func (t *quotaText) section() section {
	return section{
		name: "quota", entries: []entry{
			at("file", quotaFile, &t.File, "", "a file with the limit of each key, CSV or, by its name, `.json`, relative to the rule file: see below").
				needed("want a file such as plans.csv"),
			at("by", keyPart, &t.By, "", "the part of a request that is looked up in the file, written as a part of a `key`").
				unless("the rule's `key`, of one part").within("`ip`, `host`, a header, cookie or query parameter"),
			at("plans", mapped(mapping((*tierText).planSection), readPlans), &t.plans, "",
				"names that the file may use, each with a `rate`, a `burst` or both").unless("none: the file has only numbers"),
			at("unknown", words(UnknownDefault, UnknownRefuse), &t.Unknown, string(UnknownDefault),
				"what happens to a request whose key is not in the file: `default` gives it the rule's own limit, "+
					"`refuse` refuses it without Retry-After"),
			at("max", whole[uint64](1, spec.MaxBurst), &t.Max, "",
				"the largest number of tokens that a limit of the file may have, as its burst or in its window; more is an error").
				unless("`1000000`; for a sliding log, which needs room for each of them, the rule's own limit"),
		},
		check: func(_ *decoder, n *yaml.Node, seen map[string]*yaml.Node) { t.at, t.seen = n, seen },
	}
}

// quotaFile is the name of a file of limits, relative to the rule file.
var quotaFile = one(textSchema, func(d *decoder, n *yaml.Node, what, s string) string {
	if s == "" {
		d.Fail(n, "%s: want the name of a file, such as plans.csv", what)
		return ""
	}
	return d.beside(s)
})

// checkQuota finds what does not go with a quota, and fills in what depends on the rule.
func (t *ruleText) checkQuota(d *decoder) {
	q := t.quota
	if q == nil || q.seen == nil {
		return
	}
	if t.seen["tiers"] != nil {
		d.Fail(t.seen["quota"], "quota: the rule has tiers, too, and both say which limit a request is under: leave one of the two out")
	}
	if t.seen["rate"] == nil && t.limit.Concurrency != 0 {
		d.Fail(t.seen["quota"], "quota: it is of a rate, and the rule has none: leave it out")
	}
	if q.seen["by"] == nil {
		if len(t.Key) != 1 {
			d.Fail(q.at, "quota: the key has %d parts: say by which of them the file has limits, such as by: %s", len(t.Key), t.Key[0])
			return
		}
		q.By = t.Key[0]
	}
	for _, s := range q.By {
		if slices.Contains([]SourceKind{SourceGlobal, SourcePath, SourceMethod}, s.Kind) {
			d.Fail(cmp.Or(q.seen["by"], q.at), "quota: a file has no limits by %s: say by: ip, host, or a header, cookie or query parameter", s)
		}
	}
	for _, p := range q.plans {
		if _, err := spec.ParseRate(p.Name); err == nil {
			d.Fail(p.at, "quota: plan %s: that is a rate, which the file may have, too: use another name", yamlfile.Quote(p.Name))
		}
	}
}

// quotaOf gives a limit the plans and the room of the rule's quota.
func (t *ruleText) quotaOf(l *spec.Limit) {
	if t.quota == nil || l.Concurrency != 0 {
		return
	}
	for _, p := range t.quota.plans {
		if !p.isBroken() {
			l.Tiers = append(l.Tiers, p.Tier)
		}
	}
	if l.Quota = t.quota.Max; l.Quota == 0 {
		l.Quota = spec.DefaultQuota
		if spec.Logs(l.Algorithm) {
			l.Quota = max(1, uint64(l.Rate.Tokens))
		}
	}
}

// resolved is the quota of a rule whose limit has come to these policies of plans.
func (t *quotaText) resolved(l *spec.Limit, plans []engine.Policy) *Quota {
	q := t.Quota
	q.Max, q.limit = l.Quota, *l
	for i, p := range plans {
		q.Plans = append(q.Plans, Plan{l.Tiers[i].Name, p})
	}
	return &q
}

// say is the quota as a text, and what a reload compares of it.
func (q *Quota) say() string {
	if q == nil {
		return ""
	}
	return fmt.Sprintf("limits by %s of %s, at most %d tokens; other keys: %s", q.By, q.File, q.Max,
		map[UnknownKey]string{UnknownDefault: "the limit above", UnknownRefuse: "refused"}[q.Unknown])
}

// refusesOthers reports whether only keys of the file have a bucket in a rule with the key.
func (q *Quota) refusesOthers(key Key) bool {
	return q != nil && q.Unknown == UnknownRefuse && key.Equal(Key{q.By})
}

// lines are those of the summary.
func (q *Quota) lines() (lines []string) {
	if q == nil {
		return nil
	}
	lines = append(lines, q.say())
	for _, p := range q.Plans {
		lines = append(lines, fmt.Sprintf("%s for the plan %s", limitText(p.Policy), p.Name))
	}
	return lines
}

// limitText is a policy, or a rate that needs no counting, as a text.
func limitText(p engine.Policy) string {
	if c := constantOf(p); c != Counted {
		return c.describe()
	}
	return describePolicy(p)
}

// LimitText returns the limit of a request as a text.
func LimitText(p engine.Policy) string { return limitText(p) }

// ByQuota reports whether each request brings its own limit to the rule's limiter, as a quota: the rule has a [Quota],
// or more tiers than a limiter can have.
func (r *Rule) ByQuota() bool {
	return r.Quota != nil || r.Store == nil && r.Tiers != nil && len(r.Tiers.Policies) > spec.MaxTiers
}

// room returns what the limiter's [engine.MaxQuota] is; 0 for none.
func (r *Rule) room() uint64 {
	switch {
	case !r.ByQuota() || !r.Counts():
		return 0
	case r.Quota != nil:
		return spec.Room(r.Policy, r.Quota.Max)
	}
	return spec.Room(r.Policy, spec.Highest(r.Tiers.Policies...))
}

// tierLimits are the limits of the tiers as a text, where a limiter does not know them.
func (r *Rule) tierLimits() string {
	if r.Quota == nil && r.ByQuota() {
		return strings.Join(r.tierLines(), "; ")
	}
	return ""
}
