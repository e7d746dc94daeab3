package config

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// maxNodes bounds the values that are read. Each use of an alias counts, so that nested aliases cannot expand without
// bound.
const maxNodes = 2_000_000

// Parse reads the text of a file. The error is of type [yamlfile.Errors], with at most a hundred mistakes.
func Parse(file string, text []byte) (*Document, error) {
	d := &decoder{Walker: yamlfile.Walker{File: file}, document: &Document{File: file}}
	parser := yaml.NewDecoder(bytes.NewReader(text))
	var root yaml.Node
	if err := parser.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return nil, yamlfile.Errors{syntaxError(file, err)}
	}
	if len(root.Content) > 0 {
		d.root(root.Content[0])
		if err := parser.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
			d.warn(root.Content[0], "only the first document of the file is read")
		}
	}
	if len(d.Errors) > 0 {
		return d.document, d.Errors
	}
	return d.document, nil
}

// syntaxError returns an error of the parser in envoyproxy/ratelimit's words, with its position if known.
func syntaxError(file string, err error) *yamlfile.Error {
	e := &yamlfile.Error{File: file, Line: 1, Column: 1, Message: "error loading config file: " + err.Error()}
	if loadErr := (*yaml.LoadError)(nil); errors.As(err, &loadErr) {
		e.Line, e.Column = max(loadErr.Mark.Line, 1), max(loadErr.Mark.Column, 1)
		e.Message = "error loading config file: " + loadErr.Message
	}
	return e
}

type decoder struct {
	yamlfile.Walker
	document *Document
}

func (d *decoder) warn(n *yaml.Node, format string, args ...any) {
	if len(d.document.Warnings) < yamlfile.MaxErrors {
		d.document.Warnings = append(d.document.Warnings, d.Note(n, format, args...))
	}
}

func positionOf(n *yaml.Node) position { return position{n.Line, n.Column} }

// value resolves an alias and counts the node. It returns nil for null. It also returns nil if the file is too large.
func (d *decoder) value(n *yaml.Node) *yaml.Node {
	v := d.Visit(n, maxNodes, "error loading config file: more than %d values, each counted as often as an alias names it")
	if v == nil || v.Tag == "!!null" {
		return nil
	}
	return v
}

type field func(*yaml.Node)

// fields calls a function for each key of a mapping. Keys of the mapping itself come first, then keys that it merges
// ("<<").
func (d *decoder) fields(n *yaml.Node, fields map[string]field) {
	if n.Kind != yaml.MappingNode {
		d.Fail(n, "error loading config file: want a mapping, not %s", yamlfile.KindOf(n))
		return
	}
	seen := map[string]bool{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Tag == "!!merge":
			merged = append(merged, value)
		case key.Kind != yaml.ScalarNode || key.Tag != "!!str":
			d.Fail(key, "config error, key is not of type string: %s", describe(key))
		case fields[key.Value] == nil && !knownKeys[key.Value]:
			d.Fail(key, "config error, unknown key '%s'", key.Value)
		case fields[key.Value] == nil:
			d.warn(key, "'%s' has no effect here", key.Value)
		default:
			if seen[key.Value] {
				d.warn(key, "'%s' occurs twice here: the last one counts", key.Value)
			}
			seen[key.Value] = true
			if v := d.value(value); v != nil {
				fields[key.Value](v)
			}
		}
	}
	for _, m := range merged {
		d.merge(m, fields, seen)
	}
}

// merge reads the value of "<<", one or more mappings, for keys not in seen.
func (d *decoder) merge(n *yaml.Node, fields map[string]field, seen map[string]bool) {
	n = d.value(n)
	if n == nil {
		return
	}
	if n.Kind == yaml.SequenceNode {
		for _, element := range n.Content {
			d.merge(element, fields, seen)
		}
		return
	}
	remaining := map[string]field{}
	for name, decode := range fields {
		if !seen[name] {
			remaining[name] = decode
		} else {
			remaining[name] = func(*yaml.Node) {}
		}
	}
	d.fields(n, remaining)
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		seen[n.Content[i].Value] = true
	}
}

var knownKeys = map[string]bool{
	"domain": true, "key": true, "value": true, "descriptors": true, "rate_limit": true, "unit": true,
	"unit_multiplier": true, "requests_per_unit": true, "unlimited": true, "shadow_mode": true, "quota_mode": true,
	"name": true, "replaces": true, "detailed_metric": true, "value_to_metric": true, "share_threshold": true,
	"metadata": true,
}

func (d *decoder) list(n *yaml.Node, read func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		d.Fail(n, "error loading config file: want a list, not %s", yamlfile.KindOf(n))
		return
	}
	for _, element := range n.Content {
		v := d.value(element)
		if v == nil || v.Kind != yaml.MappingNode {
			d.Fail(element, "config error, yaml file contains list of type other than map: %s", describe(element))
			continue
		}
		read(v)
	}
}

func (d *decoder) root(n *yaml.Node) {
	doc := d.document
	doc.pos = positionOf(n)
	if n = d.value(n); n == nil {
		return
	}
	d.fields(n, map[string]field{
		"domain":         func(n *yaml.Node) { doc.pos = positionOf(n); d.text(n, &doc.Domain) },
		"all_or_nothing": func(n *yaml.Node) { d.flag(n, &doc.AllOrNothing) },
		"descriptors":    func(n *yaml.Node) { d.descriptors(n, &doc.Descriptors) },
	})
}

func (d *decoder) descriptors(n *yaml.Node, dst *[]Descriptor) {
	*dst = nil
	d.list(n, func(n *yaml.Node) {
		descriptor := Descriptor{pos: positionOf(n)}
		d.fields(n, map[string]field{
			"key":        func(n *yaml.Node) { d.text(n, &descriptor.Key) },
			"value":      func(n *yaml.Node) { d.text(n, &descriptor.Value) },
			"cidr":       func(n *yaml.Node) { d.cidr(n, &descriptor.CIDR) },
			"regex":      func(n *yaml.Node) { d.regex(n, &descriptor.Regex) },
			"rate_limit": func(n *yaml.Node) { d.setRateLimits(n, &descriptor, d.rateLimit(n)) },
			"rate_limits": func(n *yaml.Node) {
				var limits []*RateLimit
				d.list(n, func(n *yaml.Node) { limits = append(limits, d.rateLimit(n)) })
				if len(limits) == 0 || len(limits) > MaxLimits {
					d.Fail(n, "rate_limits: want 1 to %d limits, not %d", MaxLimits, len(limits))
				}
				d.setRateLimits(n, &descriptor, limits...)
				descriptor.hasList = true
			},
			"shadow_mode":     func(n *yaml.Node) { d.flag(n, &descriptor.ShadowMode) },
			"quota_mode":      func(n *yaml.Node) { d.flag(n, &descriptor.QuotaMode) },
			"detailed_metric": func(n *yaml.Node) { d.flag(n, &descriptor.DetailedMetric) },
			"value_to_metric": func(n *yaml.Node) { d.flag(n, &descriptor.ValueToMetric) },
			"share_threshold": func(n *yaml.Node) { d.flag(n, &descriptor.ShareThreshold) },
			"metadata":        func(n *yaml.Node) { descriptor.Metadata = d.metadata(n) },
			"descriptors":     func(n *yaml.Node) { d.descriptors(n, &descriptor.Descriptors) },
		})
		*dst = append(*dst, descriptor)
	})
}

func (d *decoder) setRateLimits(n *yaml.Node, descriptor *Descriptor, limits ...*RateLimit) {
	if descriptor.RateLimits != nil {
		d.Fail(n, "rate_limit and rate_limits of one descriptor: leave one of them out")
	}
	descriptor.RateLimits = limits
}

func (d *decoder) rateLimit(n *yaml.Node) *RateLimit {
	limit := &RateLimit{pos: positionOf(n), unitPos: positionOf(n)}
	d.fields(n, map[string]field{
		"name": func(n *yaml.Node) { d.text(n, &limit.Name) },
		"unit": func(n *yaml.Node) { limit.unitPos = positionOf(n); d.text(n, &limit.Unit) },
		"unit_multiplier": func(n *yaml.Node) {
			limit.multiplierPos, limit.UnitMultiplier = positionOf(n), new(uint32)
			d.count(n, limit.UnitMultiplier)
		},
		"requests_per_unit": func(n *yaml.Node) { d.count(n, &limit.RequestsPerUnit) },
		"unlimited":         func(n *yaml.Node) { d.flag(n, &limit.Unlimited) },
		"replaces": func(n *yaml.Node) {
			limit.replacesPos, limit.Replaces = positionOf(n), nil
			d.list(n, func(n *yaml.Node) {
				name := ""
				d.fields(n, map[string]field{"name": func(n *yaml.Node) { d.text(n, &name) }})
				limit.Replaces = append(limit.Replaces, name)
			})
		},
		"algorithm": func(n *yaml.Node) { d.algorithm(n, &limit.Algorithm) },
		"burst": func(n *yaml.Node) {
			burst := uint32(0)
			if d.count(n, &burst); burst == 0 {
				d.Fail(n, "burst: want 1 to %d, not %s", uint32(math.MaxUint32), describe(n))
			}
			limit.Burst = uint64(burst)
		},
		"period":   func(n *yaml.Node) { d.period(n, &limit.Period) },
		"zone":     func(n *yaml.Node) { limit.zonePos = positionOf(n); d.text(n, &limit.Zone) },
		"quotas":   func(n *yaml.Node) { limit.Quotas = d.quotas(n) },
		"overdraw": func(n *yaml.Node) { limit.overdrawPos = positionOf(n); d.flag(n, &limit.Overdraw) },
	})
	return limit
}

func (d *decoder) cidr(n *yaml.Node, dst *netip.Prefix) {
	text := ""
	if d.text(n, &text); text == "" {
		return
	}
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil || prefix.Addr().Is4In6():
		d.Fail(n, "cidr: want a range of addresses, such as 10.0.0.0/8 or 2001:db8::/32, not %s", describe(n))
	case prefix != prefix.Masked():
		d.Fail(n, "cidr: %s has bits after the prefix: did you mean %s?", describe(n), prefix.Masked())
	default:
		*dst = prefix
	}
}

// regex reads an RE2 expression. It must match the whole value, as in Envoy.
func (d *decoder) regex(n *yaml.Node, dst **regexp.Regexp) {
	text := ""
	if d.text(n, &text); text == "" {
		return
	}
	_, err := regexp.Compile(text)
	if err != nil {
		d.Fail(n, "regex: %s", err)
		return
	}
	*dst = regexp.MustCompile("^(?s:" + text + ")$")
}

func (d *decoder) algorithm(n *yaml.Node, dst *engine.Algorithm) {
	name := ""
	if d.text(n, &name); name == "" {
		return
	}
	algorithm, err := spec.ParseAlgorithm(name)
	if err != nil {
		d.Fail(n, "%s", err)
	}
	*dst = algorithm
}

func (d *decoder) period(n *yaml.Node, dst *time.Duration) {
	text := ""
	if d.text(n, &text); text == "" {
		return
	}
	period, err := time.ParseDuration(text)
	if err != nil || period <= 0 {
		d.Fail(n, "period: want a time such as 90s or 1h30m, not %s", describe(n))
		return
	}
	*dst = period
}

// text reads a scalar. As in envoyproxy/ratelimit, a whole number or Boolean counts as its text.
func (d *decoder) text(n *yaml.Node, dst *string) {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.Fail(n, "error loading config file: want a text, not %s", yamlfile.KindOf(n))
	case n.Tag == "!!float":
		d.Fail(n, "error checking config: %s is a fraction; write it in quotes if it is a text", n.Value)
	default:
		*dst = n.Value
	}
}

// flag reads a Boolean. As in envoyproxy/ratelimit, the words of YAML 1.1 count.
func (d *decoder) flag(n *yaml.Node, dst *bool) {
	if n.Kind == yaml.ScalarNode && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0 {
		switch strings.ToLower(n.Value) {
		case "true", "yes", "on", "y":
			*dst = true
			return
		case "false", "no", "off", "n":
			*dst = false
			return
		}
	}
	d.Fail(n, "error loading config file: want true or false, not %s", describe(n))
}

// count reads a whole number from 0 to 4,294,967,295. A leading 0 makes it octal, as in envoyproxy/ratelimit.
func (d *decoder) count(n *yaml.Node, dst *uint32) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!float" {
		d.Fail(n, "error checking config: want a whole number, not %s", n.Value)
		return
	}
	value, err := strconv.ParseUint(strings.TrimPrefix(n.Value, "+"), 0, 32)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil {
		d.Fail(n, "error loading config file: want a whole number from 0 to %d, not %s", uint32(math.MaxUint32), describe(n))
		return
	}
	if len(n.Value) > 1 && n.Value[0] == '0' && n.Value[1] >= '0' && n.Value[1] <= '9' {
		d.warn(n, "%s is octal: %d", n.Value, value)
	}
	*dst = uint32(value)
}

// metadata reads any mapping into a Struct, the form in which an answer carries it.
func (d *decoder) metadata(n *yaml.Node) *structpb.Struct {
	if n.Kind != yaml.MappingNode {
		d.Fail(n, "error loading config file: want a mapping, not %s", yamlfile.KindOf(n))
		return nil
	}
	fields := map[string]any{}
	if !d.checkMetadata(n) {
		return nil
	}
	if err := n.Decode(&fields); err != nil {
		d.Fail(n, "error loading config file: metadata: %s", err)
		return nil
	}
	s, err := structpb.NewStruct(fields)
	if err != nil {
		d.Fail(n, "error loading config file: metadata: %s", err)
		return nil
	}
	return s
}

// checkMetadata counts the nodes below n, because a library expands their aliases later. It refuses values that a
// Struct cannot represent.
func (d *decoder) checkMetadata(n *yaml.Node) bool {
	if n = d.value(n); n == nil {
		return !d.IsFull()
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Tag != "!!str" && child.Tag != "!!merge" {
			d.Fail(child, "config error, key is not of type string: %s", describe(child))
			return false
		}
		if !d.checkMetadata(child) {
			return false
		}
	}
	return true
}

// describe returns a value, or an alias's name, for an error message, cut to the length of a line.
func describe(n *yaml.Node) string {
	if n.Kind == yaml.AliasNode {
		return "*" + n.Value
	}
	return yamlfile.KindOf(n)
}
