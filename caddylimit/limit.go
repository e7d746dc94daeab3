package caddylimit

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits/spec"

	"github.com/weir-go/weir/caddylimit/internal/key"
	"github.com/weir-go/weir/caddylimit/internal/match"
	"github.com/weir-go/weir/caddylimit/internal/zone"
)

// A Limit is one of the limits of a [Handler]. It has a name, and either a rate or a concurrency.
type Limit struct {
	// Name identifies the limit in headers, metrics and later configurations: 1 to 128 printable ASCII characters.
	Name string `json:"name,omitempty"`
	// Match selects the requests to which the limit applies. The default is all requests.
	Match caddyhttp.RawMatcherSets `json:"match,omitempty" caddy:"namespace=http.matchers"`
	// Key is a list of texts with placeholders, which together are the key. Each key has its own bucket. The default is
	// the address of the client, {http.vars.client_ip}.
	Key []string `json:"key,omitempty"`
	// Algorithm is token-bucket (the default), fixed-window, sliding-window, sliding-log or batch-refill.
	Algorithm string `json:"algorithm,omitempty"`
	// Rate is the number of tokens per period, such as 10/s or 5/10s. A fixed window may have a calendar period, as in
	// 1000/day, 1000/week or 1000/month. 0 refuses all requests, and unlimited admits all.
	Rate string `json:"rate,omitempty"`
	// Burst is the number of tokens in a full bucket. 0 stands for the number of tokens in Rate.
	Burst uint64 `json:"burst,omitempty"`
	// Aligned makes fixed windows start at multiples of their length since 1970.
	Aligned bool `json:"aligned,omitempty"`
	// Zone is the time zone of a rate with a calendar period, such as Europe/Berlin. The default is UTC.
	Zone string `json:"zone,omitempty"`
	// Concurrency is how many requests of a key may be in flight, 1 to 65,535, instead of Rate.
	Concurrency uint64 `json:"concurrency,omitempty"`
	// Cost is how many tokens a request takes: a number, or a placeholder for a number. If Cost or the value of the
	// placeholder is empty, the request takes 1 token. Any other value refuses the request.
	Cost string `json:"cost,omitempty"`
	// Settle is a placeholder, such as {http.response.header.X-Tokens}, with the cost of the request at its end. Cost
	// is then an estimate. An estimate takes at most as many tokens as the limit has. If the value of the placeholder
	// is empty or not a whole number, the request costs the estimate.
	Settle string `json:"settle,omitempty"`
	// Quota is a placeholder for the limit of the request: a rate, optionally followed by a blank and a burst;
	// "unlimited"; or 0, which refuses the request. An empty value stands for the limit's own numbers. A request with
	// any other value is answered with 503.
	Quota string `json:"quota,omitempty"`
	// Quotas are limits from outside the configuration: a file, a hash, or a header that a trusted proxy sends.
	Quotas *Quotas `json:"quotas,omitempty"`
	// Tiers contains other numbers for some requests.
	Tiers *Tiers `json:"tiers,omitempty"`
	// MaxWait is how long a request may wait for its tokens, in the order of arrival: 1 ms to 1 minute, or 0 for no
	// wait. A wait needs a token bucket in this process.
	MaxWait caddy.Duration `json:"max_wait,omitempty"`
	// RefundStatus contains statuses such as 404, 5xx or 400-499, for which a request gets its tokens back.
	RefundStatus []string `json:"refund_status,omitempty"`
	// Local keeps the limit in this process even if the handler has a store.
	Local bool `json:"local,omitempty"`
	// IPv4Prefix and IPv6Prefix are how many leading bits of an address belong to the key. The defaults are 32 and 64.
	IPv4Prefix int `json:"ipv4_prefix,omitempty"`
	IPv6Prefix int `json:"ipv6_prefix,omitempty"`
	// Shadow makes the limit count and report without refusing anything.
	Shadow bool `json:"shadow,omitempty"`
	// MaxKeys is the number of keys for which there is room. The default is a million, or 100,000 for a sliding log. If
	// 256 MiB is too small for these keys, the default is lower.
	MaxKeys int `json:"max_keys,omitempty"`
	// Overflow is what happens to a new key without room. With evict, the default, the key that has used least is
	// dropped. With refuse, the new key is refused. With admit, the new key is admitted without a record.
	Overflow string `json:"overflow,omitempty"`
}

// Tiers contains other numbers for some requests of a limit. The value of a placeholder selects them. When a key
// changes its tier, its used tokens still count.
type Tiers struct {
	// By is the placeholder. If the value of the placeholder is not in Values, the request has the limit's own numbers.
	By string `json:"by,omitempty"`
	// Values contains the numbers for up to 14 values of the placeholder.
	Values map[string]Numbers `json:"values,omitempty"`
}

// Numbers are the rate and the burst of a tier, in the notation of the limit. The tier has the algorithm of the limit
// and, for windows, its period.
type Numbers struct {
	Rate  string `json:"rate,omitempty"`
	Burst uint64 `json:"burst,omitempty"`
}

type limit struct {
	name        string
	use         *zone.Use
	key         *key.Key
	inFlight    bool
	exceededErr error
	settle      *key.Template // nil if the cost is not an estimate
	limit       httplimit.Limit
	warnings    []string
}

const (
	defaultKey = "{http.vars.client_ip}"
	// longestQuota is the longest time that the bucket of a quota may take to fill: enough for a monthly limit. The
	// limiter's clock then ticks every 2 ns ([engine.TokenBuckets]).
	longestQuota = 52 * 24 * time.Hour
)

func (l *Limit) provision(ctx caddy.Context, app *zone.App, zoneSpec zone.Spec) (*limit, error) {
	result := &limit{name: l.Name, exceededErr: fmt.Errorf("the rate limit %q is exceeded", l.Name)}
	if err := zone.CheckName(l.Name); err != nil {
		return nil, err
	}
	matches, err := match.Load(ctx, l, "Match")
	if err != nil {
		return nil, err
	}
	if zoneSpec.Overflow, err = parseOverflow(l.Overflow); err != nil {
		return nil, err
	}
	result.inFlight = l.Concurrency != 0
	policy, tiers, err := l.policies(zoneSpec.Overflow, zoneSpec.Store != "" && !l.Local)
	if err != nil {
		return nil, err
	}
	zoneSpec.Policy, zoneSpec.MaxKeys = policy, l.MaxKeys
	storeSpec := zoneSpec
	isConstant := (policy == engine.Blocked() || policy == engine.Unlimited()) && !l.hasQuota() && l.Tiers == nil
	if isConstant || l.Local {
		zoneSpec = zoneSpec.InProcess()
	}
	var warnings []string
	if result.key, result.warnings, err = l.key(); err != nil {
		return nil, err
	}
	httpLimit := httplimit.Limit{
		Name: l.Name, Match: matches, Key: result.key.Key, Shadow: l.Shadow, MaxWait: time.Duration(l.MaxWait),
	}
	if httpLimit.Refund, err = parseStatuses(l.RefundStatus); err != nil {
		return nil, err
	}
	if l.Tiers != nil {
		if httpLimit.Tier, warnings, err = l.tiers(tiers, &zoneSpec); err != nil {
			return nil, err
		}
		result.warnings = append(result.warnings, warnings...)
	}
	if err := l.costs(result, &httpLimit, zoneSpec.Largest()); err != nil {
		return nil, err
	}
	if l.hasQuota() {
		if warnings, err = l.quota(ctx, app, policy, storeSpec, &zoneSpec, &httpLimit); err != nil {
			return nil, err
		}
		result.warnings = append(result.warnings, warnings...)
	}
	if folder := zoneSpec.State; folder != "" {
		if zoneSpec.State = ""; !isConstant {
			zoneSpec = zoneSpec.InFolder(folder, l.Name, l.identity()...)
		}
	}
	if result.use, err = app.Use(module, l.Name, zoneSpec); err != nil {
		return nil, err
	}
	result.limit = result.use.Limit(httpLimit)
	return result, nil
}

// costs sets the cost of requests, and the placeholder that settles the cost. A fixed cost above maxCost is an error.
func (l *Limit) costs(result *limit, httpLimit *httplimit.Limit, maxCost uint64) (err error) {
	var warnings []string
	if httpLimit.Cost, warnings, err = parseCost(l.Cost, maxCost); err != nil {
		return err
	}
	result.warnings = append(result.warnings, warnings...)
	if l.Settle == "" {
		return nil
	}
	httpLimit.Hold = true
	result.settle, warnings, err = parseSettle(l.Settle)
	result.warnings = append(result.warnings, warnings...)
	return err
}

func (l *Limit) hasQuota() bool { return l.Quota != "" || l.Quotas != nil }

// quota makes the limit use the numbers that come with requests. For this, it gives zoneSpec the policy of a zone for
// quotas. The argument policy is the limit's policy, and storeSpec has the handler's store.
func (l *Limit) quota(ctx caddy.Context, app *zone.App, policy engine.Policy, storeSpec zone.Spec, zoneSpec *zone.Spec,
	httpLimit *httplimit.Limit) (warnings []string, err error) {
	switch {
	case l.Concurrency != 0:
		return nil, errors.New("quota: a concurrency cannot have one: leave it out")
	case l.Tiers != nil:
		return nil, errors.New("quota and tiers both set the limit of a request: leave one of them out")
	case l.Quota != "" && l.Quotas != nil:
		return nil, errors.New("quota and quotas both set the limit of a request: leave one of them out")
	case policy.Algorithm() != engine.AlgorithmTokenBucket && policy != engine.Blocked() && (l.Quota != "" || policy != engine.Unlimited()):
		name := ""
		if l.Quotas == nil {
			name = fmt.Sprintf("quota %q: ", l.Quota)
		}
		return nil, fmt.Errorf("%squotas are token buckets, but the limit is a %v", name, policy)
	case policy.Window() > longestQuota:
		return nil, fmt.Errorf("rate %s, burst %d: the bucket of a limit with a quota must fill within %v, this takes %v",
			l.Rate, l.Burst, longestQuota, policy.Window())
	}
	zoneSpec.Policy = engine.TokenBuckets(longestQuota)
	if l.Quotas == nil {
		httpLimit.Quota, warnings, err = parseQuota(l.Quota, policy)
		return warnings, err
	}
	if warnings, err = l.quotas(ctx, app, policy, storeSpec, *zoneSpec, httpLimit); err != nil {
		return nil, fmt.Errorf("quotas: %w", err)
	}
	return warnings, nil
}

// identity describes which requests share a bucket, and what selects a request's numbers.
func (l *Limit) identity() (texts []string) {
	texts = append(texts, fmt.Sprintf("%q %d %d %q", l.Key, l.IPv4Prefix, l.IPv6Prefix, l.Quota))
	if l.Tiers != nil {
		texts = append(append(texts, l.Tiers.By), slices.Sorted(maps.Keys(l.Tiers.Values))...)
	}
	return texts
}

func (l *Limit) key() (*key.Key, []string, error) { return l.keyOf(l.Key) }

func (l *Limit) keyOf(templates []string) (*key.Key, []string, error) {
	bits := l.IPv6Prefix
	if len(templates) == 0 {
		templates = []string{defaultKey}
	}
	if bits == 0 {
		bits = spec.IPv6Prefix
	}
	return key.New(templates, l.IPv4Prefix, bits)
}

func parseOverflow(text string) (engine.OverflowPolicy, error) {
	for _, p := range []engine.OverflowPolicy{engine.Evict, engine.Refuse, engine.Admit} {
		if text == p.String() || text == "" {
			return p, nil
		}
	}
	return 0, fmt.Errorf("overflow %q: want evict, refuse or admit", text)
}

// policies returns the policy for requests without a quota, and the tiers' policies in the order of their names.
func (l *Limit) policies(overflow engine.OverflowPolicy, stored bool) (policy engine.Policy, tiers []engine.Policy, err error) {
	numbers := spec.Limit{
		Aligned: l.Aligned, Zone: l.Zone, MaxWait: time.Duration(l.MaxWait), Refund: len(l.RefundStatus) > 0, Overflow: overflow,
	}
	if l.Algorithm != "" {
		if numbers.Algorithm, err = spec.ParseAlgorithm(l.Algorithm); err != nil {
			return policy, nil, err
		}
	}
	if numbers.Numbers, err = (Numbers{l.Rate, l.Burst}).parse(); err != nil {
		return policy, nil, err
	}
	numbers.Concurrency = l.Concurrency
	if l.Tiers != nil {
		for _, name := range slices.Sorted(maps.Keys(l.Tiers.Values)) {
			tier, err := l.Tiers.Values[name].parse()
			if err != nil {
				return policy, nil, fmt.Errorf("tier %q: %w", name, err)
			}
			numbers.Tiers = append(numbers.Tiers, spec.Tier{Name: name, Numbers: tier})
		}
	}
	numbers.Stored = stored && (numbers.Counts() || l.hasQuota())
	policy, tiers, err = numbers.Policies()
	for _, e := range spec.ErrorsOf(err) {
		if e.Key == "store" {
			e.Message = "the handler has a store, and " + e.Message + ": write local, and each machine counts separately"
		}
	}
	if err == nil && l.MaxWait != 0 && policy.Algorithm() != engine.AlgorithmTokenBucket {
		err = fmt.Errorf("max_wait: requests can wait only for a token-bucket, and the limit is %v", policy)
	}
	return policy, tiers, err
}

func (n Numbers) parse() (numbers spec.Numbers, err error) {
	if n.Burst != 0 {
		numbers.Burst = &n.Burst
	}
	if n.Rate != "" {
		numbers.Rate, err = spec.ParseRate(n.Rate)
	}
	return numbers, err
}

// tiers sets the tiers of the zone, and returns a function for the tier of a request.
func (l *Limit) tiers(policies []engine.Policy, zoneSpec *zone.Spec) (tier func(*http.Request) int, warnings []string, err error) {
	template, warnings, err := key.Parse(l.Tiers.By)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("tiers %w", err)
	case !strings.Contains(l.Tiers.By, "{"):
		return nil, nil, fmt.Errorf("tiers %q: want a placeholder, such as {http.request.header.X-Plan}", l.Tiers.By)
	case len(l.Tiers.Values) == 0:
		return nil, nil, fmt.Errorf("tiers %q: no values: write for example paid 100/m", l.Tiers.By)
	}
	names := slices.Sorted(maps.Keys(l.Tiers.Values))
	if err := zoneSpec.SetTiers(policies); err != nil {
		return nil, nil, err
	}
	return func(r *http.Request) int {
		i, found := slices.BinarySearch(names, template.Of(r))
		if !found {
			return 0
		}
		return i + 1
	}, warnings, nil
}

// parseStatuses returns a function that reports whether an answer's status gives the tokens back. Without texts, it
// returns nil.
func parseStatuses(texts []string) (func(*http.Request, int) bool, error) {
	type statuses struct{ first, last int }
	var ranges []statuses
	for _, text := range texts {
		first, last, isRange := strings.Cut(text, "-")
		if digit, isClass := strings.CutSuffix(text, "xx"); isClass {
			first, last = digit+"00", digit+"99"
		} else if !isRange {
			last = first
		}
		low, err := strconv.Atoi(first)
		high, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil || low < 200 || high > 599 || low > high {
			return nil, fmt.Errorf("refund_status %q: want a status from 200 to 599, such as 404, 5xx or 400-499", text)
		}
		ranges = append(ranges, statuses{low, high})
	}
	if ranges == nil {
		return nil, nil
	}
	return func(_ *http.Request, status int) bool {
		return slices.ContainsFunc(ranges, func(s statuses) bool { return s.first <= status && status <= s.last })
	}, nil
}
