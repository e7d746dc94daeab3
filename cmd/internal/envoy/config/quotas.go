package config

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/quotas"
	"github.com/weir-go/weir/limits/spec"
)

// Quotas are limits of single values of a rule's last descriptor. They come from a file or from a hash of the store.
type Quotas struct {
	File, Hash string // exactly one of them is set
	Every      time.Duration
	Refuse     bool // values without a limit are refused; otherwise they have the rule's limit
	Plans      map[string]engine.Policy
	Limit      spec.Limit // the limit of the rule
}

// A QuotasText has Quotas as the file has them.
type QuotasText struct {
	File, Hash string
	Every      time.Duration
	Unknown    string
	Max        uint32
	Plans      []spec.Tier

	pos    position
	hasMax bool
}

// Source returns a text that says where the limits are.
func (q *Quotas) Source() string {
	if q.Hash != "" {
		return "the hash " + q.Hash
	}
	return q.File
}

// Read calls fn with a reader for the rule's plans and numbers. It returns the table that fn returns.
func (q *Quotas) Read(fn func(quotas.Reader) (*quotas.Table, error)) (*quotas.Table, error) {
	numbers, err := q.Limit.Quotas()
	if err != nil {
		return nil, err
	}
	defer numbers.Close()
	return fn(quotas.Reader{Plans: q.Plans, Policy: numbers.Policy})
}

// WithPolicy returns the rule's limit l with the numbers of p, which is a policy from the rule's quotas.
func (l Limit) WithPolicy(p engine.Policy) Limit {
	switch {
	case p == engine.Unlimited():
		return Limit{Unlimited: true}
	case p == engine.Blocked():
		l.Requests, l.Burst = 0, 0
		return l
	}
	l.Requests = uint32(p.Limit())
	if l.Burst != 0 {
		l.Burst, l.Window, l.Unit, l.Multiplier = p.Limit(), p.Window(), 0, 0
	}
	return l
}

func (d *decoder) quotas(n *yaml.Node) *QuotasText {
	q := &QuotasText{Every: time.Minute, Unknown: "default", Max: spec.DefaultQuota, pos: positionOf(n)}
	d.fields(n, map[string]field{
		"file":    func(n *yaml.Node) { d.text(n, &q.File) },
		"hash":    func(n *yaml.Node) { d.text(n, &q.Hash) },
		"every":   func(n *yaml.Node) { d.period(n, &q.Every) },
		"unknown": func(n *yaml.Node) { d.text(n, &q.Unknown) },
		"max":     func(n *yaml.Node) { q.hasMax = true; d.count(n, &q.Max) },
		"plans":   func(n *yaml.Node) { d.plans(n, &q.Plans) },
	})
	return q
}

func (d *decoder) plans(n *yaml.Node, dst *[]spec.Tier) {
	if n.Kind != yaml.MappingNode {
		d.Fail(n, "plans: want names with a rate each, such as free: {rate: 10/m}, not %s", describe(n))
		return
	}
	*dst = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		t := spec.Tier{Name: n.Content[i].Value}
		value := d.value(n.Content[i+1])
		if value == nil {
			continue
		}
		d.fields(value, map[string]field{
			"rate": func(n *yaml.Node) {
				text := ""
				d.text(n, &text)
				var err error
				if t.Rate, err = spec.ParseRate(text); err != nil {
					d.Fail(n, "plan %s: %s", t.Name, strings.TrimPrefix(err.Error(), "engine: "))
				}
			},
			"burst": func(n *yaml.Node) {
				burst := uint32(0)
				d.count(n, &burst)
				tokens := uint64(burst)
				t.Burst = &tokens
			},
		})
		*dst = append(*dst, t)
	}
}

// compileQuotas returns the quotas of a limit, or nil. It also sets the limit's MaxQuota.
func (c *compiler) compileQuotas(rateLimit *RateLimit, limit *Limit) *Quotas {
	text := rateLimit.Quotas
	if text == nil {
		return nil
	}
	switch {
	case (text.File == "") == (text.Hash == ""):
		c.fail(text.pos, "quotas: want either a file or a hash")
	case text.Unknown != "default" && text.Unknown != "refuse":
		c.fail(text.pos, "quotas: unknown '%s': want default or refuse", text.Unknown)
	case text.Max < 1:
		c.fail(text.pos, "quotas: max 0: want 1 to %d", uint32(math.MaxUint32))
	case text.Every < time.Second || text.Every > day:
		c.fail(text.pos, "quotas: every %s: want 1s to 24h", text.Every)
	case !rateLimit.Unlimited && limit.Requests == 0 && limit.Algorithm != engine.AlgorithmFixedWindow:
		c.fail(text.pos, "quotas of a limit of 0: write a limit, and unknown: refuse")
	case rateLimit.Unlimited:
		c.fail(text.pos, "quotas of a limit that is unlimited: leave one of them out")
	}
	if len(c.errors) > 0 {
		return nil
	}
	result := &Quotas{File: text.File, Hash: text.Hash, Every: text.Every, Refuse: text.Unknown == "refuse", Plans: map[string]engine.Policy{}}
	if result.File != "" && !filepath.IsAbs(result.File) {
		result.File = filepath.Join(filepath.Dir(c.file), result.File)
	}
	if !text.hasMax && spec.Logs(limit.Algorithm) { // a log needs room for Max times, so Max is the rule's limit
		text.Max = max(1, limit.Requests)
	}
	result.Limit = spec.Limit{Numbers: spec.Numbers{Rate: limit.rate()}, Algorithm: limit.Algorithm, Tiers: text.Plans, Quota: uint64(text.Max)}
	if rateLimit.Burst != 0 {
		result.Limit.Burst = &limit.Burst
	}
	if limit.Calendar != nil {
		result.Limit.Rate, _ = spec.ParseRate(fmt.Sprintf("%d/%v", limit.Requests, limit.Calendar.period))
		result.Limit.Zone = rateLimit.Zone
	}
	_, plans, err := result.Limit.Policies()
	if err != nil {
		c.fail(text.pos, "quotas: %v", err)
	}
	for i, p := range plans {
		result.Plans[text.Plans[i].Name] = p
	}
	if limit.Algorithm != engine.AlgorithmFixedWindow {
		limit.MaxQuota = uint64(text.Max)
	}
	return result
}
