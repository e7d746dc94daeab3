package rulefile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// A ruleText is a rule as it is written in the file. It can become two rules: see [ruleText.rules].
type ruleText struct {
	Rule
	limit spec.Limit // its numbers, without the numbers of tiers
	tiers *tierTexts
	quota *quotaText
	store *bool // nil if the key is not set

	node  *yaml.Node
	nodes map[string]*yaml.Node
}

func (t *ruleText) section() section {
	return section{
		name: "a rule", anyOf: [][]string{{"rate"}, {"concurrency"}}, entries: append(t.numberEntries(), t.effectEntries()...),
		check: func(_ *decoder, n *yaml.Node, nodes map[string]*yaml.Node) {
			t.Line, t.node, t.nodes = n.Line, n, nodes
		},
	}
}

// numberEntries returns the entries that say which requests the rule limits, and its numbers.
func (t *ruleText) numberEntries() []entry {
	r := &t.Rule
	return []entry{
		newEntry("name", ruleName, &r.Name, "", "the name of the rule in headers, metrics and reloads; no two rules have the same").
			required("it identifies the rule in answers, metrics and reloads").withoutDiff().
			withRange("1 to 64 letters, digits, `-` `_` `.`"),
		newEntry("match", mapping(ruleMatch), &r.Match, "", "the requests that the rule applies to").withDefaultText("all").withSummary("for", r.Match.String),
		newEntry("key", list(keyPart, checkUnique), (*[]KeyPart)(&r.Key), "ip", "what identifies a bucket: see below").withoutDiff().
			withSummary("by", r.Key.String),
		newEntry("algorithm", algorithm, &t.limit.Algorithm, "",
			"`token-bucket`, `batch-refill`, `fixed-window`, `sliding-window` or `sliding-log`: see [algorithms.md](algorithms.md)").
			withDefaultText("`token-bucket`").withoutDiff(),
		rateEntry(&t.limit.Rate).withDefaultText("required without `concurrency`").withSummary("limit", r.OwnLimit),
		burstEntry(&t.limit.Burst),
		concurrencyEntry(&t.limit.Concurrency),
		newEntry("aligned", boolean, &t.limit.Aligned, "", "fixed windows start at multiples of their length (UTC)").withoutDiff(),
		newEntry("zone", zone, &t.limit.Zone, "",
			"the time zone of a rate in days, weeks or months of the calendar, by its name in the tz database: `Europe/Berlin`").
			withDefaultText("`UTC`").withoutDiff(),
		newEntry("tiers", optional(mapping((*tierTexts).section)), &t.tiers, "", "other limits for requests with some values of a header: see below").
			withRange("any number; in a `store` up to 64").
			withDiff(func() any { return r.tierNames() }).withSummaryLines("", r.tierLines),
		newEntry("quota", optional(mapping((*quotaText).section)), &t.quota, "",
			"limits from outside, by the key or by a header: see below").withRange("not with `tiers` or `spread`").
			withDiff(func() any { return r.Quota.lines() }).withSummaryLines("quota", r.Quota.lines),
		newEntry("max_wait", duration(spec.MinWait, spec.MaxWait), &r.MaxWait, "",
			"how long a request that would be refused may wait for its tokens, while its client stays: see below").
			withDefaultText("none: it is refused at once").withRange("1ms to 1m; token buckets, not in a `store`").
			withSummary("wait", func() string {
				return textIf(r.MaxWait > 0, fmt.Sprintf("up to %v for tokens before a refusal", r.MaxWait))
			}),
		newEntry("cost", mapping((*Cost).section), &r.Cost, "",
			"how many tokens a request takes: a number, or a mapping that reads it from a header of the request").
			withDefaultText("`1`").withRange("up to the smallest limit of the rule").withSummary("cost", r.Cost.describe),
		newEntry("tokens", optional(mapping((*Tokens).section)), &r.Tokens, "",
			"a request costs the number of a language model's tokens that its answer reports: see below and "+
				"[budgets.md](budgets.md)").
			withSummary("tokens", r.Tokens.describe),
	}
}

// effectEntries returns the other entries of the rule: what it does in addition, and where it counts.
func (t *ruleText) effectEntries() []entry {
	r := &t.Rule
	return []entry{
		newEntry("refund_status", list(status, nil), (*[]StatusRange)(&r.Refund), "",
			"statuses, such as `404` or `2xx`: a request that is answered with one of them gets its tokens back").withRange("100 to 599, 1xx to 5xx").
			withSummary("refund", func() string { return textIf(len(r.Refund) > 0, "on "+r.Refund.String()) }),
		newEntry("response", optional(mapping((*Refusal).section)), &r.Refusal, "",
			"how refusals of the rule look: `status`, `headers`, `content_type` and `template`, as in [response](#response)").
			withDefaultText("as in the file").withSummary("answer", func() string {
			if r.Refusal == nil {
				return ""
			}
			return "refusals: " + r.Refusal.String()
		}),
		newEntry("shadow", boolean, &r.Shadow, "", "the rule counts and reports, but refuses no request"),
		newEntry("spread", boolean, &r.Spread, "",
			"the bucket is divided among all processors, so that a limit of a million requests a second and more "+
				"does not get slower with more processors: see below").withRange("`key: global` and a `token-bucket`, on this machine alone").withoutDiff().
			withSummary("bucket", func() string { return textIf(r.Spread, "on all processors") }),
		maxKeysEntry(&r.MaxKeys).withSummary("memory", func() string {
			if r.Spread || r.Store != nil || !r.Counts() {
				return "" // described elsewhere, or nothing to describe
			}
			memory, _ := r.Memory() // Describe has checked it
			return fmt.Sprintf("%s for %s keys, then %v", humanize.IBytes(memory), humanize.Comma(int64(r.MaxKeys)), r.Overflow)
		}),
		overflowEntry(&r.Overflow),
		newEntry("store", optional(boolean), &t.store, "",
			"whether the limit is kept in the file's `store`. A rule with `max_wait`, `batch-refill`, or an "+
				"`overflow` of `refuse` or `admit` cannot be in the store, and is an error unless it says `store: "+
				"false`. Then each machine counts separately").
			withDefaultText("`true` if the file has a store, else `false`").withoutDiff().withSummary("kept", func() string {
			if r.Store == nil {
				return ""
			}
			memory, _ := r.Memory()
			return fmt.Sprintf("in the store; memory %s for %s keys of this machine", humanize.IBytes(memory), humanize.Comma(int64(r.MaxKeys)))
		}),
	}
}

func rateEntry(dst *spec.Rate) entry {
	return newEntry("rate", rate, dst, "",
		"N tokens in a period: `100/s`, `10/m`, `5000/h`, `3/d`, `10/1500ms`. Only a token bucket may have a "+
			"fraction as N. A `fixed-window` may have a period of the calendar, `1000/day`, `/week` or `/month`: "+
			"see below. `0` refuses every request, without Retry-After. With `unlimited` the rule does not apply. "+
			"Neither counts anything").
		withRange("up to 1000000000/s; a sliding log 4096").withoutDiff()
}

func burstEntry(dst **uint64) entry {
	return newEntry("burst", optional(integer[uint64](1, spec.MaxBurst)), dst, "", "tokens of a full bucket; windows have none").
		withDefaultText("the tokens of the rate in its period: `1` for `1/s`, `100` for `100/s`").withoutDiff()
}

func concurrencyEntry(dst *uint64) entry {
	return newEntry("concurrency", integer[uint64](1, atomicbucket.MaxInFlight), dst, "",
		"at most N requests in flight: see below. In a rule with a `rate`, it makes a separate rule").
		withRange(fmt.Sprintf("1 to %d; not with `decide`; in a `store` at most 4096", atomicbucket.MaxInFlight)).withoutDiff()
}

func maxKeysEntry(dst *int) entry {
	return newEntry("max_keys", integer[int](1, 1<<31-1), dst, strconv.Itoa(engine.DefaultMaxKeys),
		"how many keys the table has room for. A key takes 27 bytes, and in a sliding log 13 more for each request "+
			"of the limit. In a token bucket with tiers or a quota, and in the table of Redis clients, it takes 54").withoutDiff()
}

func overflowEntry(dst *engine.OverflowPolicy) entry {
	return newEntry("overflow", choice(engine.Evict, engine.Refuse, engine.Admit), dst, "evict",
		"what happens to a new key that finds no room: `evict` forgets the key with the least debt, whose bucket "+
			"would be full again first; `refuse` refuses the new key; `admit` admits it without counting").withoutDiff()
}

var (
	algorithm = enum(spec.Names(spec.Algorithms()), spec.Algorithms())

	rate = scalar(anyOf(pattern("So many in a period: 100/s, 10/m, 5000/h, 1000/month; 0; unlimited",
		`^([0-9.]+ */ *(([0-9.]*[a-zµμ]*[smhd])+|day|week|month)|unlimited|0)$`), schema{"const": 0}),
		func(d *decoder, n *yaml.Node, _, s string) spec.Rate {
			r, err := spec.ParseRate(s)
			if err != nil {
				d.Fail(n, "%s", messageOf(err))
				return spec.Rate{}
			}
			return r
		})
)

var zone = scalar(textSchema, func(d *decoder, n *yaml.Node, keyName, s string) string {
	if _, err := spec.ParseZone(s); err != nil || s == "" {
		d.Fail(n, "%s: %s: want a name of the tz database, such as UTC or Europe/Berlin", keyName, yamlfile.Quote(s))
		return ""
	}
	return s
})

// messageOf returns an error of the engine as text, without the names of its package and options.
func messageOf(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "engine: "), "Tiers: ")
}

const maxName = 64

// ruleName describes a rule's name, which appears in header fields and metrics.
var ruleName = scalar(schema{"type": []string{"string", "number", "boolean"}, "pattern": "^[-A-Za-z0-9_.]{1,64}$"},
	func(d *decoder, n *yaml.Node, keyName, s string) string {
		if s == "" || len(s) > maxName || strings.ContainsFunc(s, func(r rune) bool {
			return !strings.ContainsRune("-_.", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) {
			d.Fail(n, "%s: %s: want 1 to %d letters, digits, - _ or .", keyName, yamlfile.Quote(s), maxName)
			return ""
		}
		return s
	})

func (c *Cost) section() section {
	const hint = "want a number, or header and max, or estimate and from"
	return section{
		name: "cost", shorthand: "default", anyOf: [][]string{{"header", "max"}, {"estimate", "from"}}, entries: []entry{
			newEntry("header", header, &c.Header, "", "the header of the request that has its cost"),
			newEntry("default", integer[uint64](1, spec.MaxBurst), &c.Default, "1", "the cost if the header is missing or not a whole number above 0"),
			newEntry("max", integer[uint64](1, spec.MaxBurst), &c.Max, "1", "the largest cost; a larger number in the "+
				"header counts as this").withDefaultText("required with `header`"),
			newEntry("estimate", integer[uint64](1, spec.MaxBurst), &c.Estimate, "", "how many tokens are held until the answer reports its cost").
				withDefaultText("required with `from`"),
			newEntry("from", costFrom, &c.From, "", "where the answer reports its cost: `json:usage.total`, "+
				"`header:X-Cost`, `trailer:X-Cost`; without a number from 0 to 10000000 there, the request costs the estimate"),
		},
		check: func(d *decoder, n *yaml.Node, nodes map[string]*yaml.Node) {
			fromAnswer, fromRequest := nodes["estimate"] != nil || nodes["from"] != nil, nodes["header"] != nil || nodes["max"] != nil
			for _, pair := range [][2]string{{"header", "max"}, {"max", "header"}, {"estimate", "from"}, {"from", "estimate"}} {
				if nodes[pair[0]] != nil && nodes[pair[1]] == nil {
					d.Fail(n, "cost: no %s: %s", pair[1], hint)
				}
			}
			switch {
			case fromAnswer && (fromRequest || nodes["default"] != nil):
				d.Fail(n, "cost: it comes either from the request or from the answer: %s", hint)
			case !fromAnswer && !fromRequest && yamlfile.Target(n).Kind == yaml.MappingNode:
				d.Fail(n, "cost: %s", hint)
			}
			if nodes["max"] == nil {
				c.Max = c.Default
			}
			if c.Default > c.Max {
				d.Fail(n, "cost: the default, %d, is above max, %d", c.Default, c.Max)
			}
		},
	}
}

func (c *Cost) describe() string {
	switch {
	case c.Header != "":
		return fmt.Sprintf("the header %s, %d without it, at most %d", c.Header, c.Default, c.Max)
	case c.Default > 1:
		return strconv.FormatUint(c.Default, 10)
	}
	return ""
}

// status describes a status such as 404, or a class such as 2xx.
var status = scalar(anyOf(schema{"type": "integer", "minimum": 100, "maximum": 599}, pattern("", "^([1-5]xx|[1-5][0-9][0-9])$")),
	func(d *decoder, n *yaml.Node, keyName, s string) StatusRange {
		if digit, ok := strings.CutSuffix(s, "xx"); ok && len(digit) == 1 && digit >= "1" && digit <= "5" {
			first := int(digit[0]-'0') * 100
			return StatusRange{first, first + 99}
		}
		status, err := strconv.Atoi(s)
		if err != nil || status < 100 || status > 599 {
			d.Fail(n, "%s: want a status such as 404, or a class of them, 1xx to 5xx, got %s", keyName, describeNode(yamlfile.Target(n)))
		}
		return StatusRange{status, status}
	})

// rulesKind describes the list of rules. The file's store must have been read before.
func (f *File) rulesKind() kind[[]Rule] {
	return kind[[]Rule]{
		read:   f.readRules,
		schema: func() schema { return oneOrMore(mapping((*ruleText).section).schema()) },
	}
}

func (f *File) readRules(d *decoder, n *yaml.Node, keyName string, dst *[]Rule) {
	if m := yamlfile.Target(n); m.Kind == yaml.MappingNode && len(m.Content) > 1 &&
		yamlfile.Target(m.Content[1]).Kind == yaml.MappingNode &&
		!slices.Contains([]string{"match", "tiers", "cost", "tokens"}, m.Content[0].Value) {
		d.Fail(n, "rules: want a list, in which each rule has its name: write - name: %s, with its keys below",
			m.Content[0].Value)
		return
	}
	firstLines := map[string]int{} // the first line of each name
	d.list(n, keyName, func(n *yaml.Node) {
		t := &ruleText{}
		s := t.section()
		s.read(d, n)
		if t.nodes == nil {
			return // not a mapping
		}
		name := t.nodes["name"]
		for _, r := range t.rules(d, f) {
			if line, ok := firstLines[r.Name]; ok && r.Name != "" {
				d.Fail(name, "name %s occurs twice: the first is on line %d", yamlfile.Quote(r.Name), line)
			} else if name != nil {
				firstLines[r.Name] = name.Line
			}
			*dst = append(*dst, r)
		}
	})
	if len(*dst) > MaxRules {
		d.Fail(n, "%d rules: want at most %d, because a request may match all of them", len(*dst), MaxRules)
	}
}

// rules returns the rule. If it has a rate and a concurrency, rules returns two rules for the same requests and keys.
func (t *ruleText) rules(d *decoder, f *File) []Rule {
	if len(t.Key) > 1 && t.Key.Uses(SourceGlobal) {
		d.Fail(t.nodes["key"], "key: global is one bucket for all requests and cannot be joined with others")
	}
	if t.Spread {
		t.checkSpread(d)
	}
	t.checkTokens(d)
	t.checkQuota(d, f)
	if t.nodes["concurrency"] != nil {
		d.concurrencyNode = cmp.Or(d.concurrencyNode, t.nodes["concurrency"])
	}
	if t.limit.Concurrency == 0 || t.nodes["rate"] == nil {
		t.resolve(d, f, &t.Rule, t.limit)
		return []Rule{t.Rule}
	}
	inFlight := NewRule(t.Name + inFlightName)
	inFlight.Match, inFlight.Key, inFlight.Shadow, inFlight.Refusal = t.Match, t.Key, t.Shadow, t.Refusal
	inFlight.MaxKeys, inFlight.Overflow, inFlight.Line = t.MaxKeys, t.Overflow, t.Line
	if len(inFlight.Name) > maxName {
		d.Fail(t.nodes["concurrency"], "concurrency: the name of the rule, with %s for its concurrency, has more than %d characters",
			inFlightName, maxName)
	}
	rateLimit := t.limit
	rateLimit.Concurrency = 0
	t.resolve(d, f, &t.Rule, rateLimit)
	t.resolve(d, f, &inFlight, spec.Limit{Numbers: spec.Numbers{Concurrency: t.limit.Concurrency}})
	return []Rule{t.Rule, inFlight}
}
