package caddylimit

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"

	"github.com/weir-go/weir/caddylimit/internal/key"
)

// parseCost returns a function that returns the cost of a request, or nil if every cost is 1. A fixed cost above
// maxCost is an error.
func parseCost(text string, maxCost uint64) (cost func(*http.Request) uint64, warnings []string, err error) {
	if text == "" {
		return nil, nil, nil
	}
	if !strings.Contains(text, "{") {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || n < 1 || n > maxCost {
			return nil, nil, fmt.Errorf("cost %q: want a whole number from 1 to the limit, which is %d, or a placeholder", text, maxCost)
		}
		return func(*http.Request) uint64 { return n }, nil, nil
	}
	template, warnings, err := key.Parse(text)
	if err != nil {
		return nil, nil, fmt.Errorf("cost %w", err)
	}
	return func(r *http.Request) uint64 {
		value := template.Of(r)
		if value == "" {
			return 1
		}
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			return n
		}
		return math.MaxUint64 // above every limit
	}, warnings, nil
}

// parseSettle returns the placeholder of a cost that is known when the request is over. A placeholder whose value the
// client sets is an error, because the client could choose the costs of its requests.
func parseSettle(text string) (*key.Template, []string, error) {
	template, warnings, err := key.Parse(text)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("settle %w", err)
	case strings.Count(text, "{") != 1 || text[0] != '{' || text[len(text)-1] != '}':
		return nil, nil, fmt.Errorf("settle %q: want one placeholder, such as {http.response.header.X-Tokens}", text)
	case strings.HasPrefix(text, "{http.") && !answerPlaceholder.MatchString(text):
		return nil, nil, fmt.Errorf("settle %q: a client could set its own price: want a placeholder of the answer, "+
			"such as {http.response.header.X-Tokens}", text)
	}
	return &template, warnings, nil
}

// answerPlaceholder matches the placeholders of Caddy that the handlers of a request set. Other values, such as a part
// of a path that a matcher found, come from the request.
var answerPlaceholder = regexp.MustCompile(`^\{http\.(response|vars|reverse_proxy|intercept)\.`)

// clientPlaceholder matches the placeholders of Caddy whose values a client can write.
var clientPlaceholder = regexp.MustCompile(`\{http\.(regexp|request\.(header|cookie|uri|orig_uri|host|hostport|method|body))\b`)

// parseQuota returns a function that returns the quota of a request. The policy is for requests without a quota.
func parseQuota(text string, policy engine.Policy) (quota func(*http.Request) (engine.Policy, error), warnings []string, err error) {
	template, warnings, err := key.Parse(text)
	if err != nil {
		return nil, nil, fmt.Errorf("quota %w", err)
	}
	if !strings.Contains(text, "{") {
		return nil, nil, fmt.Errorf("quota %q: want a placeholder, such as {http.vars.quota}", text)
	}
	if clientPlaceholder.MatchString(text) {
		warnings = append(warnings, fmt.Sprintf("quota %q: a client can write its own limit there, unless a directive before this one sets "+
			"it: use quotas with a header, which is read of trusted proxies alone, or a placeholder that only the server sets", text))
	}
	return func(r *http.Request) (engine.Policy, error) { return quotaOf(template.Of(r), policy) }, warnings, nil
}

// quotaOf reads a rate, optionally followed by a blank and a burst. Any other text is an error, and the request is
// answered with 503.
func quotaOf(text string, policy engine.Policy) (engine.Policy, error) {
	if text = strings.TrimSpace(text); text == "" {
		return policy, nil
	}
	rate, burstText, found := strings.Cut(text, " ")
	var burst uint64
	if found {
		var err error
		if burst, err = strconv.ParseUint(strings.TrimSpace(burstText), 10, 64); err != nil || burst == 0 {
			return engine.Policy{}, fmt.Errorf("a burst of %.64q: want a whole number above 0", burstText)
		}
	}
	numbers, err := Numbers{rate, burst}.parse()
	if err != nil {
		return engine.Policy{}, err
	}
	limit := spec.Limit{Numbers: numbers}
	return limit.Policy()
}
