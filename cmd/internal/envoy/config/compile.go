package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

const maxDepth = 100

// A Config has the rules of all domains. It is immutable and safe for concurrent use.
type Config struct {
	domains map[string]*domain
	rules   []*Rule
}

type domain struct {
	node
	allOrNothing bool
}

// A node of the tree is the place for all descriptors with the same path of keys and values.
type node struct {
	children  map[string]*node // the map's keys are a descriptor's key, or key_value
	wildcards []*node          // descriptors for several values, in the order of the file
	pattern   [][]byte         // for a wildcard: key_value, cut at each '*'; nil for a class
	class     class            // the values that the node selects
	rules     []*Rule          // empty: only deeper descriptors have limits
}

// A Rule is a descriptor with a limit.
type Rule struct {
	Index          int // in Config.Rules
	Limit          Limit
	Stat           string // its name in statistics, such as "domain.key_value.key2"
	Name           string // the name of the limit; "" unless the file names it
	Replaces       []string
	ShadowMode     bool
	QuotaMode      bool
	DetailedMetric bool
	Overdraw       bool // hits count even if they exceed what is left
	Metadata       *structpb.Struct
	Quotas         *Quotas // limits of single values; nil if there are none

	shorter bool // another token bucket of the descriptor has a longer period

	per    string // if the descriptor has several limits: the end of the rule's name in statistics
	domain string
	levels []level // from the first descriptor to the descriptor with the limit
}

// A level is one descriptor on the path from a domain to a rule.
type level struct {
	Entry
	stat          string // key, or key_value as in the file
	shared        string // with share_threshold: the pattern, used instead of the value in the counter's key
	wild          string // for a key with '*': the pattern, key or key_value, used instead of the value in statistics
	valueToMetric bool   // the request's value becomes part of the name in statistics
	class         bool   // the value is selected by a cidr or a regex
}

// An Entry is a rule's condition on one entry of a descriptor. The Value "" means any value. A Value with a '*' is a
// pattern. A Key with a '*' is a pattern for the text key_value.
type Entry struct{ Key, Value string }

// MaxLimits is the largest number of limits of one descriptor.
const MaxLimits = 8

// IsOneOfSeveral reports whether the rule's descriptor has further limits.
func (r *Rule) IsOneOfSeveral() bool { return r.per != "" }

// ID returns the domain and the path of the rule's descriptor as one text. It does not depend on the limit, so all
// limits of a descriptor have the same ID.
func (r *Rule) ID() string {
	id := appendText(nil, r.domain)
	for _, l := range r.levels {
		id = appendText(appendText(id, l.Key), l.Value)
		id = appendText(id, l.shared)
	}
	return string(id)
}

// Domain returns the domain of the rule.
func (r *Rule) Domain() string { return r.domain }

// Entries returns the rule's conditions on the entries of a descriptor, in order.
func (r *Rule) Entries() []Entry {
	all := make([]Entry, len(r.levels))
	for i := range r.levels {
		all[i] = r.levels[i].Entry
	}
	return all
}

// Options change what Compile accepts.
type Options struct {
	MergeDomains bool // several documents may contribute rules to one domain
}

// Compile makes a Config of all documents. Mistakes are returned as an error of type [yamlfile.Errors], with at most a
// hundred mistakes and no Config.
func Compile(documents []*Document, options Options) (*Config, error) {
	c := &compiler{config: &Config{domains: map[string]*domain{}}, options: options}
	for _, d := range documents {
		c.document(d)
	}
	c.checkOverdraws()
	if len(c.errors) > 0 {
		return nil, c.errors[:min(len(c.errors), yamlfile.MaxErrors)]
	}
	return c.config, nil
}

type compiler struct {
	config  *Config
	options Options
	errors  yamlfile.Errors
	file    string
	domain  string

	overdraws []overdraw
}

type overdraw struct {
	file, domain string
	at           place
}

func (c *compiler) checkOverdraws() {
	for _, o := range c.overdraws {
		if c.config.domains[o.domain].allOrNothing {
			c.file = o.file
			c.fail(o.at, "overdraw in a domain with all_or_nothing, which counts nothing of what is refused: leave one of them out")
		}
	}
}

func (c *compiler) fail(at place, format string, args ...any) {
	c.errors = append(c.errors, &yamlfile.Error{
		File: c.file, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...),
	})
}

func (c *compiler) document(d *Document) {
	c.file, c.domain = d.File, d.Domain
	if d.Domain == "" {
		c.fail(d.at, "config file cannot have empty domain")
		return
	}
	to := c.config.domains[d.Domain]
	if to != nil && !c.options.MergeDomains {
		c.fail(d.at, "duplicate domain '%s' in config file", d.Domain)
		return
	}
	if to == nil {
		to = &domain{}
		c.config.domains[d.Domain] = to
	}
	to.allOrNothing = to.allOrNothing || d.AllOrNothing
	c.descriptors(&to.node, d.Descriptors, d.Domain+".", nil)
}

func (c *compiler) descriptors(to *node, descriptors []Descriptor, path string, above []level) {
	for i := range descriptors {
		d := &descriptors[i]
		if d.Key == "" {
			c.fail(d.at, "descriptor has empty key")
			continue
		}
		if len(above) == maxDepth {
			c.fail(d.at, "descriptors nest deeper than %d", maxDepth)
			return
		}
		name, values := d.Key, classOf(d)
		switch {
		case values.text != "":
			c.checkClass(d)
			name += "_" + values.text
		case d.Value != "":
			name += "_" + d.Value
		}
		wild := strings.Contains(name, "*") || values.text != ""
		here := c.level(d, name, wild)
		levels := append(above[:len(above):len(above)], here)
		stat := c.stat(levels)
		if to.children[name] != nil && values.text == "" || to.has(values) {
			c.fail(d.at, "duplicate descriptor composite key '%s'", path+name)
			continue
		}
		child := &node{class: values}
		if to.children == nil {
			to.children = map[string]*node{}
		}
		if values.text == "" {
			to.children[name] = child // also for a pattern, because a request's entry may equal its text
		}
		if wild {
			to.wildcards = append(to.wildcards, child)
		}
		if wild && values.text == "" {
			child.pattern = bytes.Split([]byte(name), []byte("*"))
		}
		c.rules(child, d, stat, levels)
		c.descriptors(child, d.Descriptors, path+name+".", levels)
	}
}

func (c *compiler) rules(to *node, d *Descriptor, stat string, levels []level) {
	kinds := map[Limit]bool{}
	for _, l := range d.RateLimits {
		r := &Rule{
			Index: len(c.config.rules), Limit: c.limit(l), Stat: stat, Name: l.Name, Replaces: l.Replaces,
			ShadowMode: d.ShadowMode, QuotaMode: d.QuotaMode, DetailedMetric: d.DetailedMetric,
			Overdraw: l.Overdraw, Metadata: d.Metadata, domain: c.domain, levels: levels,
		}
		r.Quotas = c.quotas(l, &r.Limit)
		if len(d.RateLimits) > 1 {
			if r.per = "_per_" + r.Limit.Per(); slices.ContainsFunc(to.rules, func(other *Rule) bool { return other.per == r.per }) {
				r.per += "_" + strings.ReplaceAll(r.Limit.Algorithm.String(), " ", "_")
			}
			r.Stat += r.per
			if r.Limit.Unlimited {
				c.fail(l.at, "unlimited next to other limits of the descriptor: leave one of them out")
			}
			kind := Limit{Algorithm: r.Limit.Algorithm, Window: r.Limit.Window, Calendar: r.Limit.Calendar}
			if kinds[kind] {
				c.fail(l.at, "two limits of the descriptor are of the same algorithm and time: leave one of them out")
			}
			kinds[kind] = true
		}
		to.rules = append(to.rules, r)
		c.config.rules = append(c.config.rules, r)
	}
	for _, r := range to.rules {
		r.shorter = r.Limit.Algorithm == engine.AlgorithmTokenBucket && slices.ContainsFunc(to.rules, func(other *Rule) bool {
			return other.Limit.Algorithm == r.Limit.Algorithm && other.Limit.Window > r.Limit.Window
		})
	}
}

// AppendStored appends a text that distinguishes the token buckets of one descriptor. It is necessary because a store
// has the buckets of all periods in one table. The bucket with the longest period gets no text, so its count survives
// when other limits are added or removed. Windows need no text, because each length has a separate table.
func (r *Rule) AppendStored(to []byte) []byte {
	if !r.shorter {
		return to
	}
	return appendText(to, r.Limit.Window.String())
}

// level returns the level of a descriptor. name is its key or the text key_value. wild says whether name has a '*'.
func (c *compiler) level(d *Descriptor, name string, wild bool) level {
	l := level{
		Entry: Entry{d.Key, d.Value}, stat: statText(d.Key, d.Value), valueToMetric: d.ValueToMetric && (wild || d.Value == ""),
	}
	values := classOf(d)
	if values.text != "" {
		l.Entry.Value, l.stat, l.class = values.text, values.stat(), true
	}
	if d.ShareThreshold && !wild {
		c.fail(d.at, "share_threshold needs a key or a value with '*': '%s' has none", name)
	}
	if d.ShareThreshold {
		l.shared = d.Value + values.text
	}
	if strings.Contains(d.Key, "*") {
		l.wild = name
		if d.ShareThreshold {
			l.shared = name
		}
	}
	return l
}

func (c *compiler) stat(levels []level) string {
	name := separators.Replace(c.domain)
	for _, l := range levels {
		name += "." + l.stat
	}
	return name
}

func (c *compiler) limit(l *RateLimit) Limit {
	for _, name := range l.Replaces {
		switch name {
		case "":
			c.fail(l.replacesAt, "should not have an empty replaces entry")
		case l.Name:
			c.fail(l.replacesAt, "replaces should not contain name of same descriptor")
		}
	}
	unit, known := unitOf(l.Unit)
	if l.Overdraw && l.Unlimited {
		c.fail(l.overdrawAt, "should not specify overdraw when unlimited")
	}
	if l.Overdraw {
		c.overdraws = append(c.overdraws, overdraw{c.file, c.domain, l.overdrawAt})
	}
	if l.Unlimited {
		if known {
			c.fail(l.unitAt, "should not specify rate limit unit when unlimited")
		}
		return Limit{Unlimited: true}
	}
	limit := Limit{Algorithm: engine.AlgorithmFixedWindow, Requests: l.RequestsPerUnit, Unit: unit, Multiplier: 1}
	if l.UnitMultiplier != nil {
		limit.Multiplier = *l.UnitMultiplier
	}
	switch {
	case l.Period > 0 && l.Unit != "":
		c.fail(l.unitAt, "unit '%s' beside a period of %s: leave one of them out", l.Unit, l.Period)
	case l.Period > 0:
		if limit.Window = l.Period; l.Period > spec.MaxWindow {
			c.fail(l.at, "a period of %s is longer than 365 days, the longest window", l.Period)
		}
	case !known:
		c.fail(l.unitAt, "invalid rate limit unit '%s'", l.Unit)
	case limit.Multiplier == 0:
		c.fail(l.multiplierAt, "invalid unit multiplier of 0")
	default:
		ok := false
		if limit.Window, ok = window(unit, limit.Multiplier); !ok {
			c.fail(l.multiplierAt, "%d times %s is longer than 365 days, the longest window", limit.Multiplier, strings.ToLower(l.Unit))
		}
	}
	if l.Algorithm != engine.NoAlgorithm {
		limit.Algorithm = l.Algorithm
	}
	if limit.Burst = l.Burst; limit.Burst == 0 && spec.HasBurst(limit.Algorithm) {
		limit.Burst = uint64(l.RequestsPerUnit)
	}
	if l.zoneAt != (place{}) {
		c.calendar(l, &limit)
	} else if limit.Window > 0 && limit.Window <= spec.MaxWindow {
		c.numbers(l.at, limit)
	}
	return limit
}

// calendar aligns the windows of a limit with a zone's calendar.
func (c *compiler) calendar(l *RateLimit, limit *Limit) {
	calendar, err := calendarOf(limit.Unit, l.Zone)
	switch {
	case err != nil:
		c.fail(l.zoneAt, "%s", err)
	case limit.Multiplier != 1 || l.Period > 0:
		c.fail(l.zoneAt, "zone '%s': a %s of the calendar has no multiplier and no period: leave them out", l.Zone, strings.ToLower(l.Unit))
	case limit.Algorithm != engine.AlgorithmFixedWindow || l.Burst > 0:
		c.fail(l.zoneAt, "zone '%s': a %s of the calendar is of a %s, without a burst", l.Zone, strings.ToLower(l.Unit),
			spec.Name(engine.AlgorithmFixedWindow))
	default:
		limit.Calendar, limit.Window = calendar, calendar.per.Longest()
	}
}

func (c *compiler) numbers(at place, limit Limit) {
	written := spec.Limit{Numbers: spec.Numbers{Rate: limit.rate()}, Algorithm: limit.Algorithm}
	if limit.Burst != 0 {
		written.Burst = &limit.Burst
	}
	_, err := written.Policy()
	for _, e := range spec.ErrorsOf(err) {
		c.fail(at, "%s", e)
	}
}
