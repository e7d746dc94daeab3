package metering

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// maxRetryAfter is the longest Retry-After that SDKs obey. If an answer has a longer one, an SDK sends the request
// again at once.
const maxRetryAfter = time.Minute

// Speaks reports whether a rule's refusals have the form of a model's API ([Refuse]).
func (ms *Meters) Speaks(rule string) bool {
	m := ms.Of(rule)
	return m != nil && m.tokens.From == (rulefile.CostPlace{})
}

// Refuse answers a request that a check has refused, in the form of the API that was called.
func Refuse(w http.ResponseWriter, r *http.Request, res *httplimit.Result, c *httplimit.Check, status int) {
	text := fmt.Sprintf("Rate limit %s reached: limit %d, requested %d, left %d.", c.Name(), c.Decision.Limit, c.N, c.Decision.Remaining)
	wait := res.RetryAfter()
	switch {
	case wait == engine.Never:
		text += " The request can never pass."
	case wait > 0:
		text += fmt.Sprintf(" Try again in %v.", wait)
	}
	h := w.Header()
	if wait > maxRetryAfter {
		h.Set("X-Should-Retry", "false")
	}
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	api := requestOf(r).API
	if api == rulefile.APIBedrock {
		h.Set("X-Amzn-Errortype", "ThrottlingException")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(errorOf(api, status, text)) // an error means that the client has gone
}

func errorOf(api rulefile.API, status int, text string) any {
	type object = map[string]any
	switch api {
	case rulefile.APIAnthropic:
		return object{"type": "error", "error": object{"type": "rate_limit_error", "message": text}}
	case rulefile.APIGemini:
		return object{"error": object{"code": status, "message": text, "status": "RESOURCE_EXHAUSTED"}}
	case rulefile.APIOllama:
		return object{"error": text}
	case rulefile.APIBedrock:
		return object{"message": text}
	case rulefile.APIOpenAI, rulefile.APIAuto:
	}
	return object{"error": object{"message": text, "type": "tokens", "param": nil, "code": "rate_limit_exceeded"}}
}

// WriteFields writes the header fields in which the APIs report what a key has left. It reports the rule with the least
// left.
func (ms *Meters) WriteFields(h http.Header, res *httplimit.Result, now time.Time) {
	var tightest [2]*httplimit.Check
	for i := range res.Len() {
		c := res.Check(i)
		m := ms.Of(c.Name())
		if m == nil || c.Shadow() || c.Unlimited() || !c.Answered() {
			continue
		}
		for j, style := range []rulefile.TokenFields{rulefile.TokenFieldsOpenAI, rulefile.TokenFieldsAnthropic} {
			if m.tokens.Fields == style && (tightest[j] == nil || c.Decision.Remaining < tightest[j].Decision.Remaining) {
				tightest[j] = c
			}
		}
	}
	if c := tightest[0]; c != nil {
		h.Set("X-Ratelimit-Limit-Tokens", strconv.FormatUint(c.Decision.Limit, 10))
		h.Set("X-Ratelimit-Remaining-Tokens", strconv.FormatUint(c.Decision.Remaining, 10))
		h.Set("X-Ratelimit-Reset-Tokens", c.Decision.ResetAfter.Round(time.Millisecond).String())
	}
	if c := tightest[1]; c != nil {
		h.Set("Anthropic-Ratelimit-Tokens-Limit", strconv.FormatUint(c.Decision.Limit, 10))
		h.Set("Anthropic-Ratelimit-Tokens-Remaining", strconv.FormatUint(c.Decision.Remaining, 10))
		h.Set("Anthropic-Ratelimit-Tokens-Reset", now.Add(c.Decision.ResetAfter).UTC().Format(time.RFC3339))
	}
}
