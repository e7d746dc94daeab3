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

	at   *yaml.Node
	seen map[string]*yaml.Node
}

func (t *ruleText) section() section {
	return section{
		name: "a rule", anyOf: [][]string{{"rate"}, {"concurrency"}}, entries: append(t.numbers(), t.deeds()...),
		check: func(_ *decoder, n *yaml.Node, seen map[string]*yaml.Node) { t.Line, t.at, t.seen = n.Line, n, seen },
	}
}

// numbers returns the entries for the numbers of the rule, and for which requests it limits.
func (t *ruleText) numbers() []entry {
	r := &t.Rule
	return []entry{
		at("name", ruleName, &r.Name, "", "the name of the rule in headers, metrics and reloads; no two rules have the same").
			needed("it identifies the rule in answers, metrics and reloads").apart().
			within("1 to 64 letters, digits, `-` `_` `.`"),
		at("match", mapping(ruleMatch), &r.Match, "", "the requests that the rule applies to").unless("all").saying("for", r.Match.String),
		at("key", list(keyPart, notTwice), (*[]KeyPart)(&r.Key), "ip", "what identifies a bucket: see below").apart().
			saying("by", r.Key.String),
		at("algorithm", algorithm, &t.limit.Algorithm, "",
			"`token-bucket`, `batch-refill`, `fixed-window`, `sliding-window` or `sliding-log`: see [algorithms.md](algorithms.md)").
			unless("`token-bucket`").apart(),
		rateEntry(&t.limit.Rate).unless("required without `concurrency`").saying("limit", r.OwnLimit),
		burstEntry(&t.limit.Burst),
		concurrencyEntry(&t.limit.Concurrency),
		at("aligned", yes, &t.limit.Aligned, "", "fixed windows start at multiples of their length (UTC)").apart(),
		at("zone", zone, &t.limit.Zone, "",
			"the time zone of a rate in days, weeks or months of the calendar, by its name in the tz database: `Europe/Berlin`").
			unless("`UTC`").apart(),
		at("tiers", optional(mapping((*tierTexts).section)), &t.tiers, "", "other limits for requests with some values of a header: see below").
			within("any number; in a `store` up to 64").
			comparing(func() any { return r.tierNames() }).listing("", r.tierLines),
		at("quota", optional(mapping((*quotaText).section)), &t.quota, "",
			"limits from outside, by the key or by a header: see below").within("not with `tiers` or `spread`").
			comparing(func() any { return r.Quota.lines() }).listing("quota", r.Quota.lines),
		at("max_wait", duration(spec.MinWait, spec.MaxWait), &r.MaxWait, "",
			"how long a request that would be refused may wait for its tokens, while its client stays: see below").
			unless("none: it is refused at once").within("1ms to 1m; token buckets, not in a `store`").
			saying("wait", func() string {
				return when(r.MaxWait > 0, fmt.Sprintf("up to %v for tokens before a refusal", r.MaxWait))
			}),
		at("cost", mapping((*Cost).section), &r.Cost, "",
			"how many tokens a request takes: a number, or a mapping that reads it from a header of the request").
			unless("`1`").within("up to the smallest limit of the rule").saying("cost", r.Cost.describe),
		at("tokens", optional(mapping((*Tokens).section)), &r.Tokens, "",
			"a request costs the number of a language model's tokens that its answer reports: see below and "+
				"[budgets.md](budgets.md)").
			saying("tokens", r.Tokens.describe),
	}
}

// deeds returns all other entries of the rule: what else it does, and where it counts.
func (t *ruleText) deeds() []entry {
	r := &t.Rule
	return []entry{
		at("refund_status", list(status, nil), (*[]StatusRange)(&r.Refund), "",
			"statuses, such as `404` or `2xx`: a request that is answered with one of them gets its tokens back").within("100 to 599, 1xx to 5xx").
			saying("refund", func() string { return when(len(r.Refund) > 0, "on "+r.Refund.String()) }),
		at("response", optional(mapping((*Refusal).section)), &r.Refusal, "",
			"how refusals of the rule look: `status`, `headers`, `content_type` and `template`, as in [response](#response)").
			unless("as in the file").saying("answer", func() string {
			if r.Refusal == nil {
				return ""
			}
			return "refusals: " + r.Refusal.String()
		}),
		at("shadow", yes, &r.Shadow, "", "the rule counts and reports, but refuses no request"),
		at("spread", yes, &r.Spread, "",
			"the bucket is divided among all processors, so that a limit of a million requests a second and more "+
				"does not get slower with more processors: see below").within("`key: global` and a `token-bucket`, on this machine alone").apart().
			saying("bucket", func() string { return when(r.Spread, "on all processors") }),
		maxKeysEntry(&r.MaxKeys).saying("memory", func() string {
			if r.Spread || r.Store != nil || !r.Counts() {
				return "" // described elsewhere, or nothing to describe
			}
			memory, _ := r.Memory() // Describe has checked it
			return fmt.Sprintf("%s for %s keys, then %v", humanize.IBytes(memory), humanize.Comma(int64(r.MaxKeys)), r.Overflow)
		}),
		overflowEntry(&r.Overflow),
		at("store", optional(yes), &t.store, "",
			"whether the limit is kept in the file's `store`. A rule with `max_wait`, `batch-refill`, or an "+
				"`overflow` of `refuse` or `admit` cannot be in the store, and is an error unless it says `store: "+
				"false`. Then each machine counts separately").
			unless("`true` if the file has a store, else `false`").apart().saying("kept", func() string {
			if r.Store == nil {
				return ""
			}
			memory, _ := r.Memory()
			return fmt.Sprintf("in the store; memory %s for %s keys of this machine", humanize.IBytes(memory), humanize.Comma(int64(r.MaxKeys)))
		}),
	}
}

func rateEntry(into *spec.Rate) entry {
	return at("rate", rate, into, "",
		"N tokens in a period: `100/s`, `10/m`, `5000/h`, `3/d`, `10/1500ms`. Only a token bucket may have a "+
			"fraction as N. A `fixed-window` may have a period of the calendar, `1000/day`, `/week` or `/month`: "+
			"see below. `0` refuses every request, without Retry-After. With `unlimited` the rule does not apply. "+
			"Neither counts anything").
		within("up to 1000000000/s; a sliding log 4096").apart()
}

func burstEntry(into **uint64) entry {
	return at("burst", optional(whole[uint64](1, spec.MaxBurst)), into, "", "tokens of a full bucket; windows have none").
		unless("the tokens of the rate in its period: `1` for `1/s`, `100` for `100/s`").apart()
}

func concurrencyEntry(into *uint64) entry {
	return at("concurrency", whole[uint64](1, atomicbucket.MaxInFlight), into, "",
		"at most N requests in flight: see below. In a rule with a `rate`, it makes a separate rule").
		within(fmt.Sprintf("1 to %d; not with `decide`; in a `store` at most 4096", atomicbucket.MaxInFlight)).apart()
}

func maxKeysEntry(into *int) entry {
	return at("max_keys", whole[int](1, 1<<31-1), into, strconv.Itoa(engine.DefaultMaxKeys),
		"how many keys the table has room for. A key takes 27 bytes, and in a sliding log 13 more for each request "+
			"of the limit. In a token bucket with tiers or a quota, and in the table of Redis clients, it takes 54").apart()
}

func overflowEntry(into *engine.OverflowPolicy) entry {
	return at("overflow", choice(engine.Evict, engine.Refuse, engine.Admit), into, "evict",
		"what happens to a new key that finds no room: `evict` forgets the key with the least debt, whose bucket "+
			"would be full again first; `refuse` refuses the new key; `admit` admits it without counting").apart()
}

var (
	algorithm = chosen(spec.Names(spec.Algorithms()), spec.Algorithms())

	rate = one(anyOf(pattern("So many in a period: 100/s, 10/m, 5000/h, 1000/month; 0; unlimited",
		`^([0-9.]+ */ *(([0-9.]*[a-zµμ]*[smhd])+|day|week|month)|unlimited|0)$`), schema{"const": 0}),
		func(d *decoder, n *yaml.Node, _, s string) spec.Rate {
			r, err := spec.ParseRate(s)
			if err != nil {
				d.Fail(n, "%s", plain(err))
				return spec.Rate{}
			}
			return r
		})
)

var zone = one(textSchema, func(d *decoder, n *yaml.Node, what, s string) string {
	if _, err := spec.ParseZone(s); err != nil || s == "" {
		d.Fail(n, "%s: %s: want a name of the tz database, such as UTC or Europe/Berlin", what, yamlfile.Quote(s))
		return ""
	}
	return s
})

// plain returns an error of the engine without the names of its package and options.
func plain(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "engine: "), "Tiers: ")
}

const maxName = 64

// ruleName describes a rule's name, which appears in header fields and metrics.
var ruleName = one(schema{"type": []string{"string", "number", "boolean"}, "pattern": "^[-A-Za-z0-9_.]{1,64}$"},
	func(d *decoder, n *yaml.Node, what, s string) string {
		if s == "" || len(s) > maxName || strings.ContainsFunc(s, func(r rune) bool {
			return !strings.ContainsRune("-_.", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) {
			d.Fail(n, "%s: %s: want 1 to %d letters, digits, - _ or .", what, yamlfile.Quote(s), maxName)
			return ""
		}
		return s
	})

func (c *Cost) section() section {
	const hint = "want a number, or header and max, or estimate and from"
	return section{
		name: "cost", brief: "default", anyOf: [][]string{{"header", "max"}, {"estimate", "from"}}, entries: []entry{
			at("header", header, &c.Header, "", "the header of the request that has its cost"),
			at("default", whole[uint64](1, spec.MaxBurst), &c.Default, "1", "the cost if the header is missing or not a whole number above 0"),
			at("max", whole[uint64](1, spec.MaxBurst), &c.Max, "1", "the largest cost; a larger number in the "+
				"header counts as this").unless("required with `header`"),
			at("estimate", whole[uint64](1, spec.MaxBurst), &c.Estimate, "", "how many tokens are held until the answer reports its cost").
				unless("required with `from`"),
			at("from", costFrom, &c.From, "", "where the answer reports its cost: `json:usage.total`, "+
				"`header:X-Cost`, `trailer:X-Cost`; without a number from 0 to 10000000 there, the request costs the estimate"),
		},
		check: func(d *decoder, n *yaml.Node, seen map[string]*yaml.Node) {
			afterwards, header := seen["estimate"] != nil || seen["from"] != nil, seen["header"] != nil || seen["max"] != nil
			for _, needed := range [][2]string{{"header", "max"}, {"max", "header"}, {"estimate", "from"}, {"from", "estimate"}} {
				if seen[needed[0]] != nil && seen[needed[1]] == nil {
					d.Fail(n, "cost: no %s: %s", needed[1], hint)
				}
			}
			switch {
			case afterwards && (header || seen["default"] != nil):
				d.Fail(n, "cost: it comes either from the request or from the answer: %s", hint)
			case !afterwards && !header && yamlfile.Target(n).Kind == yaml.MappingNode:
				d.Fail(n, "cost: %s", hint)
			}
			if seen["max"] == nil {
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
var status = one(anyOf(schema{"type": "integer", "minimum": 100, "maximum": 599}, pattern("", "^([1-5]xx|[1-5][0-9][0-9])$")),
	func(d *decoder, n *yaml.Node, what, s string) StatusRange {
		if digit, ok := strings.CutSuffix(s, "xx"); ok && len(digit) == 1 && digit >= "1" && digit <= "5" {
			first := int(digit[0]-'0') * 100
			return StatusRange{first, first + 99}
		}
		status, err := strconv.Atoi(s)
		if err != nil || status < 100 || status > 599 {
			d.Fail(n, "%s: want a status such as 404, or a class of them, 1xx to 5xx, got %s", what, bare(yamlfile.Target(n)))
		}
		return StatusRange{status, status}
	})

// rulesKind describes the list of rules. The file's store must have been read before.
func (f *File) rulesKind() kind[[]Rule] {
	return kind[[]Rule]{
		read:   f.readRules,
		schema: func() schema { return many(mapping((*ruleText).section).schema()) },
	}
}

func (f *File) readRules(d *decoder, n *yaml.Node, what string, into *[]Rule) {
	if m := yamlfile.Target(n); m.Kind == yaml.MappingNode && len(m.Content) > 1 &&
		yamlfile.Target(m.Content[1]).Kind == yaml.MappingNode &&
		!slices.Contains([]string{"match", "tiers", "cost", "tokens"}, m.Content[0].Value) {
		d.Fail(n, "rules: want a list, in which each rule has its name: write - name: %s, with its keys below",
			m.Content[0].Value)
		return
	}
	first := map[string]int{} // the first line of each name
	d.list(n, what, func(n *yaml.Node) {
		t := &ruleText{}
		s := t.section()
		s.read(d, n)
		if t.seen == nil {
			return // not a mapping
		}
		name := t.seen["name"]
		for _, r := range t.rules(d, f) {
			if line, ok := first[r.Name]; ok && r.Name != "" {
				d.Fail(name, "name %s occurs twice: the first is on line %d", yamlfile.Quote(r.Name), line)
			} else if name != nil {
				first[r.Name] = name.Line
			}
			*into = append(*into, r)
		}
	})
	if len(*into) > MaxRules {
		d.Fail(n, "%d rules: want at most %d, because a request may match all of them", len(*into), MaxRules)
	}
}

// rules returns the rule. If it has a rate and a concurrency, rules returns two rules for the same requests and keys.
func (t *ruleText) rules(d *decoder, f *File) []Rule {
	if len(t.Key) > 1 && t.Key.Uses(SourceGlobal) {
		d.Fail(t.seen["key"], "key: global is one bucket for all requests and cannot be joined with others")
	}
	if t.Spread {
		t.checkSpread(d)
	}
	t.checkTokens(d)
	t.checkQuota(d, f)
	if t.seen["concurrency"] != nil {
		d.concurrent = cmp.Or(d.concurrent, t.seen["concurrency"])
	}
	if t.limit.Concurrency == 0 || t.seen["rate"] == nil {
		t.resolve(d, f, &t.Rule, t.limit)
		return []Rule{t.Rule}
	}
	beside := NewRule(t.Name + inFlightName)
	beside.Match, beside.Key, beside.Shadow, beside.Refusal = t.Match, t.Key, t.Shadow, t.Refusal
	beside.MaxKeys, beside.Overflow, beside.Line = t.MaxKeys, t.Overflow, t.Line
	if len(beside.Name) > maxName {
		d.Fail(t.seen["concurrency"], "concurrency: the name of the rule, with %s for its concurrency, has more than %d characters",
			inFlightName, maxName)
	}
	rated := t.limit
	rated.Concurrency = 0
	t.resolve(d, f, &t.Rule, rated)
	t.resolve(d, f, &beside, spec.Limit{Numbers: spec.Numbers{Concurrency: t.limit.Concurrency}})
	return []Rule{t.Rule, beside}
}
