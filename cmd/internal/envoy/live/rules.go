package live

import (
	"context"
	"fmt"
	"strings"

	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/engine"

	"github.com/weir-go/weir/cmd/internal/envoy"
	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

// maxCards bounds the rules that have a separate card, because all cards go to each open page once per second.
const maxCards = 500

// These are names of cards that belong to no single rule. They have spaces and no dot, so that hardly any rule has the
// same name.
const (
	overridesCard  = "limits of requests"
	otherRulesCard = "all other rules"
)

// A view has the rules of a configuration as the page needs them.
type view struct {
	config *config.Config
	names  []string // indexed by config.Rule.Index
	rules  []admin.Rule
}

// nameOf returns the name under which a rule is counted. For a rule of another configuration, it returns the name
// without the text that distinguishes it from other rules of that name.
func (v *view) nameOf(r *config.Rule) string {
	if v.config != nil && r.Index < len(v.names) && v.config.Rules()[r.Index] == r {
		return v.names[r.Index]
	}
	return r.Stat
}

func (p *Page) newView(c *config.Config) *view {
	v := &view{config: c}
	usedNames, otherRules := map[string]bool{overridesCard: true, otherRulesCard: true}, 0
	for _, r := range c.Rules() {
		name := r.Stat // Stat, with its separators replaced
		for n := 2; usedNames[name]; n++ {
			name = fmt.Sprintf("%s (%d)", r.Stat, n)
		}
		switch {
		case r.Limit.Unlimited: // counts nothing
		case len(v.rules) < maxCards:
			usedNames[name] = true
			v.rules = append(v.rules, p.rule(r, name))
		default:
			name = otherRulesCard
			otherRules++
		}
		v.names = append(v.names, name)
	}
	if otherRules > 0 {
		v.rules = append(v.rules, admin.Rule{
			Name: otherRulesCard, Policy: fmt.Sprintf("%d rules", otherRules), For: "requests that no rule above is for", By: "entries",
		})
	}
	return v
}

func (p *Page) rule(r *config.Rule, name string) admin.Rule {
	card := admin.Rule{
		Name: name, Policy: policyText(r), For: scope(r), By: "global", Shadow: r.ShadowMode || p.options.ShadowMode,
		Buckets: buckets{p.service, r}, Stored: p.service.StoreLimiter(r),
	}
	for _, e := range r.Entries() {
		if isOpen(e) {
			label := "entry:" + e.Key
			if e.Value != "" {
				label += " (" + e.Value + ")"
			}
			card.Parts = append(card.Parts, label)
		}
	}
	if len(card.Parts) > 0 {
		card.By = strings.Join(card.Parts, " or ")
	}
	return card
}

func isOpen(e config.Entry) bool { return e.Value == "" || strings.Contains(e.Key+e.Value, "*") }

func scope(r *config.Rule) string {
	parts := []string{"domain " + r.Domain()}
	for _, e := range r.Entries() {
		if !isOpen(e) {
			parts = append(parts, e.Key+"="+e.Value)
		}
	}
	return strings.Join(parts, ", ")
}

// policyText says what a rule allows.
func policyText(r *config.Rule) string {
	l := r.Limit
	period := l.Window.String()
	if l.Unit != 0 {
		period = strings.ToLower(l.Unit.String())
		if l.Multiplier > 1 {
			period = fmt.Sprintf("%d %ss", l.Multiplier, period)
		}
	}
	if l.Calendar != nil {
		period = l.Calendar.String()
	}
	text := fmt.Sprintf("%d per %s", l.Requests, period)
	if l.Algorithm == engine.AlgorithmTokenBucket {
		text += fmt.Sprintf(", burst %d", l.Burst)
	}
	text += ", " + l.Algorithm.String()
	if r.Quotas != nil {
		text += ", limits of values in " + r.Quotas.Source()
	}
	if r.QuotaMode {
		text += ", quota mode"
	}
	return text
}

type buckets struct {
	service *envoy.Service
	rule    *config.Rule
}

// Bucket implements [admin.Buckets].
func (b buckets) Bucket(parts []string) (admin.Bucket, error) {
	d := descriptor(b.rule, parts)
	found, err := b.service.Bucket(b.rule, d)
	if err != nil {
		return admin.Bucket{}, err
	}
	if found.Key() == (engine.Key{}) {
		return admin.Bucket{Text: text(d)}, nil
	}
	return admin.Bucket{Key: found.Key(), Limit: found.Limit()}, nil
}

// find returns the counter that the page's bucket names.
func (b buckets) find(bucket admin.Bucket) (envoy.Bucket, error) {
	if bucket.Text == "" {
		found, err := b.service.BucketOf(b.rule, bucket.Key)
		if err != nil {
			return found, err
		}
		return found.WithLimit(bucket.Limit), nil
	}
	d, err := parse(bucket.Text)
	if err != nil {
		return envoy.Bucket{}, err
	}
	return b.service.Bucket(b.rule, d)
}

// Peek implements [admin.Buckets].
func (b buckets) Peek(ctx context.Context, bucket admin.Bucket) (engine.Decision, error) {
	found, err := b.find(bucket)
	if err != nil {
		return engine.Decision{}, err
	}
	return found.Peek(ctx)
}

// Reset implements [admin.Buckets].
func (b buckets) Reset(ctx context.Context, bucket admin.Bucket) error {
	found, err := b.find(bucket)
	if err != nil {
		return err
	}
	return found.Reset(ctx)
}
