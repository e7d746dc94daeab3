package rulefile

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/fieldname"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/quotas"
	"github.com/weir-go/weir/limits/spec"
)

// A Quota says where the limit of a request comes from if it is not in the rule. It comes from a file, a hash or a
// header.
type Quota struct {
	File    string        // file with the limits of many keys
	Hash    string        // hash in the file's store, with the limits of many keys
	Every   time.Duration // time between two readings of the hash
	Header  string        // canonical name of a field that trusted proxies write
	Item    string        // item of the header
	By      KeyPart       // the part of a key that is looked up in the file or the hash
	Unknown UnknownKey    // what happens to a request without a limit from outside
	Plans   []Plan        // plans that the file or the hash may name, in order
	Max     uint64        // the largest limit from outside, in tokens

	limit spec.Limit // the rule's limit, whose numbers are replaced
}

// A Plan is a limit that a file of limits can name.
type Plan struct {
	Name   string
	Policy engine.Policy
}

// UnknownKey says what happens to a request if the file, the hash or the header has no limit for it.
type UnknownKey string

const (
	UnknownDefault UnknownKey = "default" // the rule's own limit applies
	UnknownRefuse  UnknownKey = "refuse"  // the request is refused, as with a rate of 0
)

// Numbers returns a checker for the numbers in the file or the hash. The caller must close it.
func (q *Quota) Numbers() (*spec.Quotas, error) { return q.limit.Quotas() }

// Field returns the reader of the header with the limits. The parameter unit is the unit of their tokens; "" means
// requests.
func (q *Quota) Field(unit string) *quotas.Field {
	return &quotas.Field{Limit: q.limit, Name: q.Item, Unit: unit}
}

// From says, as text, where the limits come from.
func (q *Quota) From() string {
	switch {
	case q.Header != "":
		return "the header " + q.Header
	case q.Hash != "":
		return "the hash " + q.Hash
	}
	return q.File
}

type quotaText struct {
	Quota
	plans []*tierText
	node  *yaml.Node
	nodes map[string]*yaml.Node
}

func (t *quotaText) section() section {
	return section{
		name: "quota", entries: []entry{
			newEntry("file", quotaFile, &t.File, "", "a file with the limit of each key, CSV or, by its name, `.json`, relative to the rule file: see below").
				withDefaultText("one of `file`, `hash` and `header` is needed"),
			newEntry("hash", hashName, &t.Hash, "", "a hash in the file's `store` with the limit of each key").withRange("1 to 512 characters; needs `store`"),
			newEntry("every", duration(time.Second, 24*time.Hour), &t.Every, "1m", "how often the hash is read again"),
			newEntry("header", header, &t.Header, "", "a header in which `trusted_proxies` send the limit of the "+
				"request, in the syntax of `RateLimit-Policy`: see below").withRange("needs `trusted_proxies`; not " +
				"with `batch-refill`"),
			newEntry("item", itemName, &t.Item, "", "which of the header's items counts").withDefaultText("the item with the " +
				"rule's name"),
			newEntry("by", lookupPart, &t.By, "", "which value of a request is looked up in the file or hash, written like "+
				"a part of a `key`").
				withDefaultText("the rule's `key`, which must have one part").withRange("`ip`, `host`, a header, cookie or query parameter"),
			newEntry("plans", mapOf(mapping((*tierText).planSection), readPlans), &t.plans, "",
				"plans that the file or hash may name, each with its `rate`, `burst` or both").withDefaultText("none: it " +
				"has numbers only"),
			newEntry("unknown", words(UnknownDefault, UnknownRefuse), &t.Unknown, string(UnknownDefault),
				"what happens to a request whose key is not in the file or hash, or that has no valid header: with "+
					"`default` it has the rule's own limit, with `refuse` it is refused without Retry-After"),
			newEntry("max", integer[uint64](1, spec.MaxBurst), &t.Max, "",
				"the largest burst, or the largest limit of a window, that the file, hash or header may set; a "+
					"larger one is an error").
				withDefaultText("`1000000`; the rule's own limit in a sliding log, which has room for that many times in " +
					"each key"),
		},
		anyOf: [][]string{{"file"}, {"hash"}, {"header"}},
		check: func(_ *decoder, n *yaml.Node, nodes map[string]*yaml.Node) { t.node, t.nodes = n, nodes },
	}
}

// quotaFile describes the name of a file of limits. It is relative to the rule file.
var quotaFile = scalar(textSchema, func(d *decoder, n *yaml.Node, keyName, s string) string {
	if s == "" {
		d.Fail(n, "%s: want the name of a file, such as plans.csv", keyName)
		return ""
	}
	return d.resolvePath(s)
})

// lookupPart describes a part of a key that can be looked up in a file of limits.
var lookupPart = scalar(pattern("", "^ *(ip|host|(header|cookie|query):.+) *( or .*)?$"), (*decoder).keyPart)

// hashName describes the name of a hash in a store.
var hashName = scalar(schema{"type": "string", "minLength": 1, "maxLength": 512}, func(d *decoder, n *yaml.Node, keyName, s string) string {
	if s == "" || len(s) > 512 {
		d.Fail(n, "%s: want the name of a hash in the store, 1 to 512 characters, such as plans", keyName)
	}
	return s
})

// itemName describes the name of an item in a header.
var itemName = scalar(schema{"type": "string", "pattern": "^[ -~]+$", "maxLength": 1024}, func(d *decoder, n *yaml.Node, keyName, s string) string {
	if s == "" || len(s) > 1024 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		d.Fail(n, "%s: %s: want 1 to 1024 printable ASCII characters", keyName, yamlfile.Quote(s))
	}
	return s
})

// checkSource refuses a quota with keys that do not belong to its source, or with a source that cannot work.
func (t *ruleText) checkSource(d *decoder, f *File) {
	q := t.quota
	var sources []string
	for _, name := range []string{"file", "hash", "header"} {
		if q.nodes[name] != nil {
			sources = append(sources, name)
		}
	}
	if len(sources) != 1 {
		text := "no file, hash or header: want a file such as plans.csv"
		if len(sources) > 1 {
			text = strings.Join(sources, " and ") + ": want one of them"
		}
		d.Fail(q.node, "quota: %s", text)
		return
	}
	for name, source := range map[string]string{"every": "hash", "item": "header"} {
		if q.nodes[name] != nil && sources[0] != source {
			d.Fail(q.nodes[name], "%s: it needs a %s: leave it out", name, source)
		}
	}
	if sources[0] == "hash" && f.Store == nil {
		d.Fail(q.nodes["hash"], "hash: it needs a store, and the file has none: write for example store: redis://127.0.0.1:6379 outside the rules")
	}
	if sources[0] != "header" {
		return
	}
	for _, name := range []string{"by", "plans"} {
		if q.nodes[name] != nil {
			d.Fail(q.nodes[name], "%s: it needs a file or a hash: leave it out", name)
		}
	}
	switch {
	case len(f.TrustedProxies) == 0:
		d.Fail(q.nodes["header"], "header: it needs trusted_proxies: anyone can send a header, so only theirs is trusted")
	case t.limit.Algorithm == engine.AlgorithmBatchRefill:
		d.Fail(q.nodes["header"], "header: a batch-refill keeps its rate, and the header has another: use another algorithm")
	case q.Header != "": // if it is "", the name is not valid
		q.checkHeader(d, f)
	}
	if q.Item == "" {
		q.Item = t.Name
	}
}

// checkHeader refuses a field in which a proxy cannot send limits.
func (t *quotaText) checkHeader(d *decoder, f *File) {
	err := quotas.CheckName(t.Header)
	switch {
	case err == nil && fieldname.Misleads(t.Header):
		err = fmt.Errorf("%s has another meaning: want a field of its own, such as X-RateLimit-Policy", t.Header)
	case err == nil && t.Header == f.ClientIP.Header:
		err = fmt.Errorf("%s is the header of client_ip: want a field of its own, such as X-RateLimit-Policy", t.Header)
	}
	if err != nil {
		d.Fail(t.nodes["header"], "header: %v", err)
	}
}

// checkQuota refuses keys that the rule cannot have together with a quota. It also sets defaults that depend on the
// rule.
func (t *ruleText) checkQuota(d *decoder, f *File) {
	q := t.quota
	if q == nil || q.nodes == nil {
		return
	}
	t.checkSource(d, f)
	if t.nodes["tiers"] != nil {
		d.Fail(t.nodes["quota"], "quota: the rule has tiers, too, and both set the limit of a request: leave one of the two out")
	}
	if t.nodes["rate"] == nil && t.limit.Concurrency != 0 {
		d.Fail(t.nodes["quota"], "quota: it needs a rate, and the rule has none: leave it out")
	}
	if q.nodes["by"] == nil && q.Header == "" {
		if len(t.Key) != 1 {
			d.Fail(q.node, "quota: the key has %d parts: name the part whose limits the file has, such as by: %s", len(t.Key), t.Key[0])
			return
		}
		q.By = t.Key[0]
	}
	for _, s := range q.By {
		if slices.Contains([]SourceKind{SourceGlobal, SourcePath, SourceMethod}, s.Kind) {
			d.Fail(cmp.Or(q.nodes["by"], q.node), "quota: a file cannot have limits by %s: write by: ip, host, or a "+
				"header, cookie or query parameter", s)
		}
	}
	for _, p := range q.plans {
		if _, err := spec.ParseRate(p.Name); err == nil {
			d.Fail(p.node, "quota: plan %s: the name is a rate, which the file may also have: use another name", yamlfile.Quote(p.Name))
		}
	}
}

// addQuota adds to a limit the plans of the rule's quota, and the largest limit of the quota.
func (t *ruleText) addQuota(l *spec.Limit) {
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

// withPlans returns the quota of a rule. The parameter plans has the policies of the plans.
func (t *quotaText) withPlans(l *spec.Limit, plans []engine.Policy) *Quota {
	q := t.Quota
	q.Max, q.limit = l.Quota, *l
	for i, p := range plans {
		q.Plans = append(q.Plans, Plan{l.Tiers[i].Name, p})
	}
	return &q
}

// Same reports whether both quotas would read the same limits, if the store is also the same. The field Every may
// differ.
func (q *Quota) Same(other *Quota) bool {
	a, b := *q, *other
	a.Every, b.Every = 0, 0
	a.limit.InStore, b.limit.InStore = nil, nil // functions, which never compare equal
	return reflect.DeepEqual(a, b)
}

// describe returns the quota as text, which a reload compares.
func (q *Quota) describe() string {
	if q == nil {
		return ""
	}
	otherKeys := map[UnknownKey]string{UnknownDefault: "the limit above", UnknownRefuse: "refused"}[q.Unknown]
	if q.Header != "" {
		return fmt.Sprintf("item %q of the header %s of trusted proxies, at most %d tokens; without it: %s", q.Item, q.Header, q.Max, otherKeys)
	}
	every := textIf(q.Hash != "", fmt.Sprintf(", read every %v", q.Every))
	return fmt.Sprintf("limits by %s of %s%s, at most %d tokens; other keys: %s", q.By, q.From(), every, q.Max, otherKeys)
}

// refusesOtherKeys reports whether a rule with this key refuses every key that is not in the file or the hash.
func (q *Quota) refusesOtherKeys(key Key) bool {
	return q != nil && q.Unknown == UnknownRefuse && key.Equal(Key{q.By})
}

func (q *Quota) lines() (lines []string) {
	if q == nil {
		return nil
	}
	lines = append(lines, q.describe())
	for _, p := range q.Plans {
		lines = append(lines, fmt.Sprintf("%s for the plan %s", limitText(p.Policy), p.Name))
	}
	return lines
}

// limitText returns a policy, or a constant rate, as text.
func limitText(p engine.Policy) string {
	if c := constantOf(p); c != Counted {
		return c.describe()
	}
	return describePolicy(p)
}

// LimitText returns the limit of a request as text.
func LimitText(p engine.Policy) string { return limitText(p) }

// ByQuota reports whether each request passes its own limit to the limiter as a quota. It does if the rule has a
// [Quota], or more tiers than a limiter can have.
func (r *Rule) ByQuota() bool {
	return r.Quota != nil || r.Store == nil && r.Tiers != nil && len(r.Tiers.Policies) > spec.MaxTiers
}

// room returns the argument for the option [engine.MaxQuota]. It is 0 if the limiter does not need the option.
func (r *Rule) room() uint64 {
	switch {
	case !r.ByQuota() || !r.Counts():
		return 0
	case r.Quota != nil:
		return spec.Room(r.Policy, r.Quota.Max)
	}
	return spec.Room(r.Policy, spec.Highest(r.Tiers.Policies...))
}

// tierLimits returns the limits of the tiers as text if they are not in the limiter. It is "" if they are.
func (r *Rule) tierLimits() string {
	if r.Quota == nil && r.ByQuota() {
		return strings.Join(r.tierLines(), "; ")
	}
	return ""
}

// ProxyHeaders yields the canonical names of the fields in which trusted proxies report something about a client.
// They are set in client_ip and in quotas.
func (f *File) ProxyHeaders(yield func(name string) bool) {
	if f.ClientIP.Header != "" && !yield(f.ClientIP.Header) {
		return
	}
	for i := range f.Rules {
		if q := f.Rules[i].Quota; q != nil && q.Header != "" && !yield(q.Header) {
			return
		}
	}
}

// IsProxyHeader reports whether a field with this canonical name may report something about a client: ProxyHeaders
// yields the name, or it is Forwarded or begins with X-Forwarded-.
func (f *File) IsProxyHeader(name string) bool {
	for header := range f.ProxyHeaders {
		if header == name {
			return true
		}
	}
	return name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-")
}
