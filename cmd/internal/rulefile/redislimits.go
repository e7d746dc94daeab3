package rulefile

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// A RedisLimit is a limit that commands of Redis clients can name.
type RedisLimit struct {
	Name   string
	Policy engine.Policy

	limit spec.Limit
	node  *yaml.Node // nil if the limit is made for the comparison of a reload
}

// redisLimitName matches valid names of limits. Because of this form, a name is never a number, and no key of another
// limit begins with the name.
var redisLimitName = regexp.MustCompile("^[A-Za-z][A-Za-z0-9_.-]{0,63}$")

func (l *RedisLimit) section() section {
	return section{
		name: fmt.Sprintf("limit %q", l.Name), shorthand: "rate", entries: []entry{
			newEntry("rate", rate, &l.limit.Rate, "", "as that of a rule, but neither `0` nor `unlimited`").withRange("up to 1000000000/s; a sliding log 4096"),
			newEntry("burst", optional(integer[uint64](1, spec.MaxBurst)), &l.limit.Burst, "", "tokens of a full bucket").
				withDefaultText("the tokens of the rate in its period"),
			newEntry("algorithm", algorithm, &l.limit.Algorithm, "", "as that of a rule. All but a `token-bucket` have a table of `max_keys` of their own").
				withDefaultText("`token-bucket`").withRange("with `state` a `token-bucket`"),
			newEntry("aligned", boolean, &l.limit.Aligned, "", "fixed windows begin at multiples of their length (UTC)"),
			newEntry("zone", zone, &l.limit.Zone, "", "the time zone of a rate in days, weeks or months of the calendar").withDefaultText("`UTC`"),
		},
	}
}

func readRedisLimits(d *decoder, n *yaml.Node, keyName string, dst *[]RedisLimit) {
	d.nonEmptyPairs(n, keyName, func(key, value *yaml.Node) {
		l := RedisLimit{Name: yamlfile.Target(key).Value}
		if !redisLimitName.MatchString(l.Name) {
			d.Fail(key, "limits: the name %s: want a letter, and then up to 63 letters, digits, _, - or .", yamlfile.Quote(l.Name))
			return
		}
		before := len(d.Errors)
		s := l.section()
		if s.read(d, value); len(d.Errors) > before {
			return
		}
		switch {
		case l.limit.Rate == (spec.Rate{}):
			d.Fail(value, "limit %q: no rate: write for example rate: 100/m", l.Name)
			return
		case l.limit.Rate.IsFixed():
			d.Fail(value, "limit %q: a rate of %v: every limit of Redis clients counts: want tokens in a period, such as 1000/30d", l.Name, l.limit.Rate)
			return
		}
		var err error
		if l.Policy, err = l.limit.Policy(); err != nil {
			d.Fail(value, "limit %q: %v", l.Name, err)
			return
		}
		l.limit, l.node = spec.Limit{}, value
		*dst = append(*dst, l)
	})
}

// HasTable reports whether the limit has a table of its own. Only token buckets are counted in the common table.
func (l *RedisLimit) HasTable() bool { return l.Policy.Algorithm() != engine.AlgorithmTokenBucket }

// Rule returns a rule with the numbers of the limit, for a limit with a table of its own. The name of the rule cannot
// occur in a file.
func (l *RedisLimit) Rule(r *Redis) *Rule {
	rule := NewRule("redis:" + l.Name)
	rule.Policy, rule.MaxKeys, rule.Overflow = l.Policy, r.MaxKeys, r.Overflow
	return &rule
}

// checkRedisLimits refuses limits that their table cannot count. If the file does not set longest, checkRedisLimits
// sets it to what the limits need.
func (d *decoder) checkRedisLimits(r *Redis, nodes map[string]*yaml.Node) {
	if nodes["longest"] == nil {
		for _, l := range r.Limits {
			if !l.HasTable() {
				r.Longest = max(r.Longest, min((l.Policy.Window()+time.Hour-1).Truncate(time.Hour), spec.MaxWindow))
			}
		}
	}
	ticks, err := atomicbucket.NewTicks(max(r.Longest, 1))
	for i := range r.Limits {
		l := &r.Limits[i]
		switch rate := l.Policy.Rate(); {
		case l.HasTable():
			if _, err := l.Rule(r).Memory(); err != nil {
				d.Fail(l.node, "limit %q: %s", l.Name, messageOf(err))
			}
		case err != nil: // longest was refused before
		case l.Policy.Window() > r.Longest:
			d.Fail(l.node, "limit %q: it takes %v to fill, and longest is %v", l.Name, l.Policy.Window(), r.Longest)
		default:
			if _, err := ticks.Grant(rate.Tokens, rate.Period, l.Policy.Limit()); err != nil {
				d.Fail(l.node, "limit %q: %v", l.Name, err)
			}
		}
		l.node = nil
	}
}

// Limit returns the limit with a name. It returns false if there is none or if r is nil.
func (r *Redis) Limit(name string) (*RedisLimit, bool) {
	if r == nil {
		return nil, false
	}
	i := slices.IndexFunc(r.Limits, func(l RedisLimit) bool { return l.Name == name })
	if i < 0 {
		return nil, false
	}
	return &r.Limits[i], true
}

func (r *Redis) Policies() map[string]engine.Policy {
	policies := map[string]engine.Policy{}
	for _, l := range r.Limits {
		policies[l.Name] = l.Policy
	}
	return policies
}
