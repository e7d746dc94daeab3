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

// maxShown bounds the rules that have a separate card, because all cards go to each open page once per second.
const maxShown = 500

// These are names of cards that belong to no single rule. They have spaces and no dot, so that hardly any rule has the
// same name.
const (
	ofRequests = "limits of requests"
	ofOthers   = "all other rules"
)

// shown has the rules of a configuration as the page needs them.
type shown struct {
	config *config.Config
	names  []string // indexed by config.Rule.Index
	rules  []admin.Rule
}

// nameOf returns the name under which a rule is counted. For a rule of another configuration, it returns the name
// without the text that distinguishes it from other rules of that name.
func (s *shown) nameOf(r *config.Rule) string {
	if s.config != nil && r.Index < len(s.names) && s.config.Rules()[r.Index] == r {
		return s.names[r.Index]
	}
	return r.Stat
}

func (p *Page) show(c *config.Config) *shown {
	s := &shown{config: c}
	taken, others := map[string]bool{ofRequests: true, ofOthers: true}, 0
	for _, r := range c.Rules() {
		name := r.Stat // Stat, with its separators replaced
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s (%d)", r.Stat, n)
		}
		switch {
		case r.Limit.Unlimited: // counts nothing
		case len(s.rules) < maxShown:
			taken[name] = true
			s.rules = append(s.rules, p.rule(r, name))
		default:
			name = ofOthers
			others++
		}
		s.names = append(s.names, name)
	}
	if others > 0 {
		s.rules = append(s.rules, admin.Rule{
			Name: ofOthers, Policy: fmt.Sprintf("%d rules", others), For: "requests that no rule above is for", By: "entries",
		})
	}
	return s
}

func (p *Page) rule(r *config.Rule, name string) admin.Rule {
	shown := admin.Rule{
		Name: name, Policy: policy(r), For: matches(r), By: "global", Shadow: r.ShadowMode || p.options.ShadowMode,
		Buckets: buckets{p.service, r}, Stored: p.service.Stored(r),
	}
	for _, e := range r.Entries() {
		if open(e) {
			label := "entry:" + e.Key
			if e.Value != "" {
				label += " (" + e.Value + ")"
			}
			shown.Parts = append(shown.Parts, label)
		}
	}
	if len(shown.Parts) > 0 {
		shown.By = strings.Join(shown.Parts, " or ")
	}
	return shown
}

func open(e config.Entry) bool { return e.Value == "" || strings.Contains(e.Key+e.Value, "*") }

func matches(r *config.Rule) string {
	all := []string{"domain " + r.Domain()}
	for _, e := range r.Entries() {
		if !open(e) {
			all = append(all, e.Key+"="+e.Value)
		}
	}
	return strings.Join(all, ", ")
}

// policy says what a rule allows.
func policy(r *config.Rule) string {
	l := r.Limit
	per := l.Window.String()
	if l.Unit != 0 {
		per = strings.ToLower(l.Unit.String())
		if l.Multiplier > 1 {
			per = fmt.Sprintf("%d %ss", l.Multiplier, per)
		}
	}
	if l.Calendar != nil {
		per = l.Calendar.String()
	}
	text := fmt.Sprintf("%d per %s", l.Requests, per)
	if l.Algorithm == engine.AlgorithmTokenBucket {
		text += fmt.Sprintf(", burst %d", l.Burst)
	}
	text += ", " + l.Algorithm.String()
	if r.Quotas != nil {
		text += ", limits of values in " + r.Quotas.From()
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

// Of implements [admin.Buckets].
func (b buckets) Of(parts []string) (admin.Bucket, error) {
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

// The method in returns the counter that the page's bucket names.
func (b buckets) in(named admin.Bucket) (envoy.Bucket, error) {
	if named.Text == "" {
		found, err := b.service.BucketOf(b.rule, named.Key)
		if err != nil {
			return found, err
		}
		return found.Under(named.Limit), nil
	}
	d, err := parse(named.Text)
	if err != nil {
		return envoy.Bucket{}, err
	}
	return b.service.Bucket(b.rule, d)
}

// Peek implements [admin.Buckets].
func (b buckets) Peek(ctx context.Context, named admin.Bucket) (engine.Decision, error) {
	found, err := b.in(named)
	if err != nil {
		return engine.Decision{}, err
	}
	return found.Peek(ctx)
}

// Reset implements [admin.Buckets].
func (b buckets) Reset(ctx context.Context, named admin.Bucket) error {
	found, err := b.in(named)
	if err != nil {
		return err
	}
	return found.Reset(ctx)
}
