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

	text spec.Limit
	at   *yaml.Node // nil if the limit is made for the comparison of a reload
}

// redisLimitName matches valid names of limits. Because of this form, a name is never a number, and no key of another
// limit begins with the name.
var redisLimitName = regexp.MustCompile("^[A-Za-z][A-Za-z0-9_.-]{0,63}$")

func (l *RedisLimit) section() section {
	return section{
		name: fmt.Sprintf("limit %q", l.Name), brief: "rate", entries: []entry{
			at("rate", rate, &l.text.Rate, "", "as that of a rule, but neither `0` nor `unlimited`").within("up to 1000000000/s; a sliding log 4096"),
			at("burst", optional(whole[uint64](1, spec.MaxBurst)), &l.text.Burst, "", "tokens of a full bucket").
				unless("the tokens of the rate in its period"),
			at("algorithm", algorithm, &l.text.Algorithm, "", "as that of a rule. All but a `token-bucket` have a table of `max_keys` of their own").
				unless("`token-bucket`").within("with `state` a `token-bucket`"),
			at("aligned", yes, &l.text.Aligned, "", "fixed windows begin at multiples of their length (UTC)"),
			at("zone", zone, &l.text.Zone, "", "the time zone of a rate in days, weeks or months of the calendar").unless("`UTC`"),
		},
	}
}

func readRedisLimits(d *decoder, n *yaml.Node, what string, into *[]RedisLimit) {
	d.filled(n, what, func(key, value *yaml.Node) {
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
		case l.text.Rate == (spec.Rate{}):
			d.Fail(value, "limit %q: no rate: write for example rate: 100/m", l.Name)
			return
		case l.text.Rate.IsFixed():
			d.Fail(value, "limit %q: a rate of %v: every limit of Redis clients counts: want tokens in a period, such as 1000/30d", l.Name, l.text.Rate)
			return
		}
		var err error
		if l.Policy, err = l.text.Policy(); err != nil {
			d.Fail(value, "limit %q: %v", l.Name, err)
			return
		}
		l.text, l.at = spec.Limit{}, value
		*into = append(*into, l)
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
func (d *decoder) checkRedisLimits(r *Redis, seen map[string]*yaml.Node) {
	if seen["longest"] == nil {
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
				d.Fail(l.at, "limit %q: %s", l.Name, plain(err))
			}
		case err != nil: // longest was refused before
		case l.Policy.Window() > r.Longest:
			d.Fail(l.at, "limit %q: it takes %v to fill, and longest is %v", l.Name, l.Policy.Window(), r.Longest)
		default:
			if _, err := ticks.Grant(rate.Tokens, rate.Period, l.Policy.Limit()); err != nil {
				d.Fail(l.at, "limit %q: %v", l.Name, err)
			}
		}
		l.at = nil
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
	all := map[string]engine.Policy{}
	for _, l := range r.Limits {
		all[l.Name] = l.Policy
	}
	return all
}
