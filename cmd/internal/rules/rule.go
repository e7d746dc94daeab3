package rules

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strconv"

	"github.com/weir-go/weir/cmd/internal/metering"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/httplimit/reading"
)

// A Rule is a rule of a file, with the compiled functions that make its key.
type Rule struct {
	*rulefile.Rule
	parts  []httplimit.KeyFunc // parts of the key
	index  *reading.Index      // the matches of all rules
	number int                 // the rule's number in index
	client reading.AddrFunc
	lookup *lookup // for a quota; nil for none
}

// A Client finds the address of a request's client, and the key for this address. [httplimit.ClientIP] is a Client.
type Client interface {
	Key(httplimit.Hasher, *http.Request) (engine.Key, bool)
	Addr(*http.Request) netip.Addr
}

// Trusted is a Client for requests that are completely trusted, such as those of a log. With it, rules use the headers
// of trusted proxies in every request.
type Trusted struct{ Client }

// Compile compiles the rules of a file, in their order, and reads the files of their quotas. Its only errors are about
// these files, because [rulefile.Parse] has found all other mistakes.
func Compile(f *rulefile.File, client Client) ([]*Rule, error) {
	matches := make([]*reading.Match, len(f.Rules))
	for i := range f.Rules {
		matches[i] = &f.Rules[i].Match
	}
	index := reading.NewIndex(matches...)
	isTrusted, err := trusted(f, client)
	if err != nil {
		return nil, err
	}
	compiled := make([]*Rule, len(f.Rules))
	for i := range f.Rules {
		rule := &Rule{Rule: &f.Rules[i], client: client.Addr, index: index, number: i}
		for _, sources := range rule.Key {
			part, err := partKey(sources, client.Key, &rule.Match)
			if err != nil {
				return nil, fmt.Errorf("rule %s: %w", rule.Name, err)
			}
			rule.parts = append(rule.parts, part)
		}
		if rule.Quota != nil {
			var err error
			if rule.lookup, err = rule.newLookup(client, isTrusted); err != nil {
				return nil, fmt.Errorf("rule %s: quota: %w", rule.Name, err)
			}
		}
		compiled[i] = rule
	}
	return compiled, nil
}

// Limit returns the limit of the rule. The caller must set its Limiter or Source. If the rule has Tokens, the caller
// must also set its Cost, because only the caller has the body. Until then, the Cost is 1.
func (r *Rule) Limit() httplimit.Limit {
	l := httplimit.Limit{
		Name:   r.Name,
		Match:  r.appliesTo,
		Key:    httplimit.Join(r.parts...),
		Cost:   cost(r.Cost),
		Tier:   r.tier(),
		Quota:  r.quota(),
		Refund: refund(r.Refund),
		Shadow: r.Shadow,

		MaxWait: r.MaxWait,
	}
	if l.Quota != nil {
		l.QuotaElse = r.PolicyIn(0)
		if r.lookup != nil {
			l.QuotaElse = r.lookup.invalidPolicy()
		}
	}
	if t := r.Tokens; t != nil {
		l.Hold, l.Unit = true, t.Unit()
		l.Cost = func(*http.Request) uint64 { return max(t.Estimate.N, 1) }
		if t.From == (rulefile.CostPlace{}) {
			l.Match = func(request *http.Request) bool { return !metering.IsFree(request) && r.appliesTo(request) }
		}
	}
	return l
}

// Exempt returns a function that reports whether a request is exempt from all rules, for [httplimit.Skip]. It returns
// nil without exemptions.
func Exempt(f *rulefile.File, client Client) func(*http.Request) bool {
	if len(f.Exempt) == 0 {
		return nil
	}
	return func(r *http.Request) bool {
		return slices.ContainsFunc(f.Exempt, func(m reading.Match) bool { return m.IsCertain(r, client.Addr) })
	}
}

// KeyTexts returns the texts of the parts of a request's key, in the form of [httplimit.KeyFunc.Text], such as
// "ip:192.0.2.1", "text:secret" or "number:0". It returns none if the rule does not count the request.
func (r *Rule) KeyTexts(request *http.Request) []string {
	texts := make([]string, len(r.parts))
	for i, part := range r.parts {
		text, ok := part.Text(request)
		if !ok {
			return nil
		}
		texts[i] = text
	}
	return texts
}

const maxNumberLen = 64

// cost returns a function that returns how many tokens a request takes, or nil if every request takes one.
func cost(c rulefile.Cost) func(*http.Request) uint64 {
	switch {
	case c.Header != "":
		return func(r *http.Request) uint64 {
			value := valueOf(r, c.Header)
			if len(value) > maxNumberLen {
				if value[0] == '0' {
					return c.Max // the number is unknown, so it may be large
				}
				value = value[:maxNumberLen] // out of range in any case, or not a number
			}
			n, err := strconv.ParseUint(value, 10, 64)
			if n == 0 || err != nil && !errors.Is(err, strconv.ErrRange) {
				return c.Default
			}
			return min(n, c.Max) // if a number is out of range, n is the largest
		}
	case c.Default == 1:
		return nil
	}
	return func(*http.Request) uint64 { return c.Default }
}

// isFor reports whether the rule counts a request. If the request's tier is unlimited, it is not counted.
func (r *Rule) appliesTo(request *http.Request) bool {
	return r.Meets(request) && (r.lookup != nil || !r.IsUnlimited(request))
}

// Meets reports whether the rule applies to a request. It also applies if its limit for the request is unlimited.
func (r *Rule) Meets(request *http.Request) bool { return r.index.Meets(r.number, request, r.client) }

// deniedTier is a tier that no limiter has. So the limiter refuses every request with it, without a record
// ([engine.Key.Tier]).
const deniedTier = math.MaxInt

// tier returns a function that finds the tier of a request. It is nil if the tier is always 0.
func (r *Rule) tier() func(*http.Request) int {
	if r.ByQuota() || r.Tiers == nil && r.Constant == rulefile.Counted {
		return nil
	}
	return func(request *http.Request) int {
		tier := r.tierOf(request)
		if r.ConstantOf(tier) == rulefile.Denied {
			return deniedTier
		}
		return tier
	}
}

func (r *Rule) tierOf(request *http.Request) int {
	if r.Tiers == nil {
		return 0
	}
	return r.Tiers.TierOf(valueOf(request, r.Tiers.Header))
}

// valueOf returns the first line of a header, as the upstream reads it. If lines had different values, the request was
// refused before.
func valueOf(r *http.Request, name string) string {
	return reading.FirstLine(r, name)
}

func refund(s rulefile.Statuses) func(*http.Request, int) bool {
	if len(s) == 0 {
		return nil
	}
	return func(_ *http.Request, status int) bool { return s.Contains(status) }
}
