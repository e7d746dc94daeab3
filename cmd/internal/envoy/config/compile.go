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

// MaxHits is the largest count of a fixed window.
const MaxHits = 1 << 32

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

	isShorter bool     // another token bucket of the descriptor has a longer period
	ownKeys   []string // the keys in the file that the reference does not have

	statSuffix string // if the descriptor has several limits: the end of the rule's name in statistics
	domain     string
	levels     []level // from the first descriptor to the descriptor with the limit
}

// A level is one descriptor on the path from a domain to a rule.
type level struct {
	Entry
	stat          string // key, or key_value as in the file
	sharedPattern string // with share_threshold: the pattern, used instead of the value in the counter's key
	statPattern   string // for a key with '*': the pattern, key or key_value, used instead of the value in statistics
	valueToMetric bool   // the request's value becomes part of the name in statistics
	classKey      string // "cidr" or "regex" if such a key selects the value, else ""
}

// An Entry is a rule's condition on one entry of a descriptor. The Value "" means any value. A Value with a '*' is a
// pattern. A Key with a '*' is a pattern for the text key_value.
type Entry struct{ Key, Value string }

// MaxLimits is the largest number of limits of one descriptor.
const MaxLimits = 8

// IsOneOfSeveral reports whether the rule's descriptor has further limits.
func (r *Rule) IsOneOfSeveral() bool { return r.statSuffix != "" }

// ID returns the domain and the path of the rule's descriptor as one text. It does not depend on the limit, so all
// limits of a descriptor have the same ID.
func (r *Rule) ID() string {
	id := appendText(nil, r.domain)
	for _, l := range r.levels {
		id = appendText(appendText(id, l.Key), l.Value)
		id = appendText(id, l.sharedPattern)
	}
	return string(id)
}

// Domain returns the domain of the rule.
func (r *Rule) Domain() string { return r.domain }

// Entries returns the rule's conditions on the entries of a descriptor, in order.
func (r *Rule) Entries() []Entry {
	entries := make([]Entry, len(r.levels))
	for i := range r.levels {
		entries[i] = r.levels[i].Entry
	}
	return entries
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
		c.compileDocument(d)
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
	pos          position
}

func (c *compiler) checkOverdraws() {
	for _, o := range c.overdraws {
		if c.config.domains[o.domain].allOrNothing {
			c.file = o.file
			c.fail(o.pos, "overdraw in a domain with all_or_nothing, which counts nothing of what is refused: leave one of them out")
		}
	}
}

func (c *compiler) fail(pos position, format string, args ...any) {
	c.errors = append(c.errors, &yamlfile.Error{
		File: c.file, Line: pos.line, Column: pos.column, Message: fmt.Sprintf(format, args...),
	})
}

func (c *compiler) compileDocument(d *Document) {
	c.file, c.domain = d.File, d.Domain
	if d.Domain == "" {
		c.fail(d.pos, "config file cannot have empty domain")
		return
	}
	dom := c.config.domains[d.Domain]
	if dom != nil && !c.options.MergeDomains {
		c.fail(d.pos, "duplicate domain '%s' in config file", d.Domain)
		return
	}
	if dom == nil {
		dom = &domain{}
		c.config.domains[d.Domain] = dom
	}
	dom.allOrNothing = dom.allOrNothing || d.AllOrNothing
	c.compileDescriptors(&dom.node, d.Descriptors, d.Domain+".", nil)
}

func (c *compiler) compileDescriptors(parent *node, compileDescriptors []Descriptor, path string, parentLevels []level) {
	for i := range compileDescriptors {
		descriptor := &compileDescriptors[i]
		if descriptor.Key == "" {
			c.fail(descriptor.pos, "descriptor has empty key")
			continue
		}
		if len(parentLevels) == maxDepth {
			c.fail(descriptor.pos, "descriptors nest deeper than %d", maxDepth)
			return
		}
		name, values := descriptor.Key, classOf(descriptor)
		switch {
		case values.text != "":
			c.checkClass(descriptor)
			name += "_" + values.text
		case descriptor.Value != "":
			name += "_" + descriptor.Value
		}
		isWildcard := strings.Contains(name, "*") || values.text != ""
		childLevel := c.newLevel(descriptor, name, isWildcard)
		levels := append(parentLevels[:len(parentLevels):len(parentLevels)], childLevel)
		stat := c.statName(levels)
		if parent.children[name] != nil && values.text == "" || parent.hasClass(values) {
			c.fail(descriptor.pos, "duplicate descriptor composite key '%s'", path+name)
			continue
		}
		child := &node{class: values}
		if parent.children == nil {
			parent.children = map[string]*node{}
		}
		if values.text == "" {
			parent.children[name] = child // also for a pattern, because a request's entry may equal its text
		}
		if isWildcard {
			parent.wildcards = append(parent.wildcards, child)
		}
		if isWildcard && values.text == "" {
			child.pattern = bytes.Split([]byte(name), []byte("*"))
		}
		c.compileRules(child, descriptor, stat, levels)
		c.compileDescriptors(child, descriptor.Descriptors, path+name+".", levels)
	}
}

func (c *compiler) compileRules(target *node, d *Descriptor, stat string, levels []level) {
	kinds := map[Limit]bool{}
	for _, l := range d.RateLimits {
		r := &Rule{
			Index: len(c.config.rules), Limit: c.compileLimit(l), Stat: stat, Name: l.Name, Replaces: l.Replaces,
			ShadowMode: d.ShadowMode, QuotaMode: d.QuotaMode, DetailedMetric: d.DetailedMetric,
			Overdraw: l.Overdraw, Metadata: d.Metadata, domain: c.domain, levels: levels,
			ownKeys: ownKeys(d, l, levels),
		}
		r.Quotas = c.compileQuotas(l, &r.Limit)
		if len(d.RateLimits) > 1 {
			if r.statSuffix = "_per_" + r.Limit.Per(); slices.ContainsFunc(target.rules, func(other *Rule) bool { return other.statSuffix == r.statSuffix }) {
				r.statSuffix += "_" + strings.ReplaceAll(r.Limit.Algorithm.String(), " ", "_")
			}
			r.Stat += r.statSuffix
			if r.Limit.Unlimited {
				c.fail(l.pos, "unlimited next to other limits of the descriptor: leave one of them out")
			}
			kind := Limit{Algorithm: r.Limit.Algorithm, Window: r.Limit.Window, Calendar: r.Limit.Calendar}
			if kinds[kind] {
				c.fail(l.pos, "two limits of the descriptor are of the same algorithm and time: leave one of them out")
			}
			kinds[kind] = true
		}
		target.rules = append(target.rules, r)
		c.config.rules = append(c.config.rules, r)
	}
	for _, r := range target.rules {
		r.isShorter = r.Limit.Algorithm == engine.AlgorithmTokenBucket && slices.ContainsFunc(target.rules, func(other *Rule) bool {
			return other.Limit.Algorithm == r.Limit.Algorithm && other.Limit.Window > r.Limit.Window
		})
	}
}

// AppendStored appends a text that distinguishes the token buckets of one descriptor. The text is necessary because a
// store has the buckets of all periods in one table. The bucket with the longest period gets no text, so its count
// survives when other limits are added or removed. Windows need no text, because each length has a separate table.
func (r *Rule) AppendStored(dst []byte) []byte {
	if !r.isShorter {
		return dst
	}
	return appendText(dst, r.Limit.Window.String())
}

// newLevel returns the level of a descriptor. name is its key, key_value, or its key with a cidr or a regex. isWildcard
// says whether the descriptor is for several values: name has a '*', a cidr or a regex.
func (c *compiler) newLevel(d *Descriptor, name string, isWildcard bool) level {
	l := level{
		Entry: Entry{d.Key, d.Value}, stat: statText(d.Key, d.Value), valueToMetric: d.ValueToMetric && (isWildcard || d.Value == ""),
	}
	values := classOf(d)
	if values.text != "" {
		l.Entry.Value, l.stat = values.text, values.stat()
		l.classKey, _, _ = strings.Cut(values.text, ":")
	}
	if d.ShareThreshold && !isWildcard {
		c.fail(d.pos, "share_threshold needs a key or a value with '*': '%s' has none", name)
	}
	if d.ShareThreshold {
		l.sharedPattern = d.Value + values.text
	}
	if strings.Contains(d.Key, "*") {
		l.statPattern = name
		if d.ShareThreshold {
			l.sharedPattern = name
		}
	}
	return l
}

func (c *compiler) statName(levels []level) string {
	name := separators.Replace(c.domain)
	for _, l := range levels {
		name += "." + l.stat
	}
	return name
}

func (c *compiler) compileLimit(rateLimit *RateLimit) Limit {
	for _, name := range rateLimit.Replaces {
		switch name {
		case "":
			c.fail(rateLimit.replacesPos, "should not have an empty replaces entry")
		case rateLimit.Name:
			c.fail(rateLimit.replacesPos, "replaces should not contain name of same descriptor")
		}
	}
	unit, hasUnit := unitOf(rateLimit.Unit)
	if rateLimit.Overdraw && rateLimit.Unlimited {
		c.fail(rateLimit.overdrawPos, "should not specify overdraw when unlimited")
	}
	if rateLimit.Overdraw {
		c.overdraws = append(c.overdraws, overdraw{c.file, c.domain, rateLimit.overdrawPos})
	}
	if rateLimit.Unlimited {
		if hasUnit {
			c.fail(rateLimit.unitPos, "should not specify rate limit unit when unlimited")
		}
		return Limit{Unlimited: true}
	}
	limit := Limit{Algorithm: engine.AlgorithmFixedWindow, Requests: rateLimit.RequestsPerUnit, Unit: unit, Multiplier: 1}
	if rateLimit.UnitMultiplier != nil {
		limit.Multiplier = *rateLimit.UnitMultiplier
	}
	switch {
	case rateLimit.Period > 0 && rateLimit.Unit != "":
		c.fail(rateLimit.unitPos, "unit '%s' beside a period of %s: leave one of them out", rateLimit.Unit, rateLimit.Period)
	case rateLimit.Period > 0:
		if limit.Window = rateLimit.Period; rateLimit.Period > spec.MaxWindow {
			c.fail(rateLimit.pos, "a period of %s is longer than 365 days, the longest window", rateLimit.Period)
		}
	case !hasUnit:
		c.fail(rateLimit.unitPos, "invalid rate limit unit '%s'", rateLimit.Unit)
	case limit.Multiplier == 0:
		c.fail(rateLimit.multiplierPos, "invalid unit multiplier of 0")
	default:
		ok := false
		if limit.Window, ok = windowLength(unit, limit.Multiplier); !ok {
			c.fail(rateLimit.multiplierPos, "%d times %s is longer than 365 days, the longest window", limit.Multiplier, strings.ToLower(rateLimit.Unit))
		}
	}
	if rateLimit.Algorithm != engine.NoAlgorithm {
		limit.Algorithm = rateLimit.Algorithm
	}
	if limit.Burst = rateLimit.Burst; limit.Burst == 0 && spec.HasBurst(limit.Algorithm) {
		limit.Burst = uint64(rateLimit.RequestsPerUnit)
	}
	if rateLimit.zonePos != (position{}) {
		c.alignCalendar(rateLimit, &limit)
	} else if limit.Window > 0 && limit.Window <= spec.MaxWindow {
		c.checkNumbers(rateLimit.pos, limit)
	}
	return limit
}

// alignCalendar aligns the windows of a limit with a zone's calendar.
func (c *compiler) alignCalendar(rateLimit *RateLimit, limit *Limit) {
	calendar, err := calendarOf(limit.Unit, rateLimit.Zone)
	switch {
	case err != nil:
		c.fail(rateLimit.zonePos, "%s", err)
	case limit.Multiplier != 1 || rateLimit.Period > 0:
		c.fail(rateLimit.zonePos, "zone '%s': a %s of the calendar has no multiplier and no period: leave them out", rateLimit.Zone, strings.ToLower(rateLimit.Unit))
	case limit.Algorithm != engine.AlgorithmFixedWindow || rateLimit.Burst > 0:
		c.fail(rateLimit.zonePos, "zone '%s': a %s of the calendar is of a %s, without a burst", rateLimit.Zone, strings.ToLower(rateLimit.Unit),
			spec.Name(engine.AlgorithmFixedWindow))
	default:
		limit.Calendar, limit.Window = calendar, calendar.period.Longest()
	}
}

func (c *compiler) checkNumbers(pos position, limit Limit) {
	specLimit := spec.Limit{
		Numbers: spec.Numbers{Rate: limit.rate()}, Algorithm: limit.Algorithm,
		Aligned: limit.Algorithm == engine.AlgorithmFixedWindow && limit.Requests > 0,
	}
	if limit.Burst != 0 {
		specLimit.Burst = &limit.Burst
	}
	_, err := specLimit.Policy()
	for _, e := range spec.ErrorsOf(err) {
		c.fail(pos, "%s", e)
	}
	if specLimit.Aligned && err == nil { // windows of all limits with this length are counted in one table
		specLimit.Rate = spec.Of(engine.Per(MaxHits, limit.Window))
		if _, err := specLimit.Policy(); err != nil {
			c.fail(pos, "a period of %s is too short for a fixed window: 1ms is long enough", limit.Window)
		}
	}
}
