package httplimit

import (
	"fmt"
	"net/http"

	"github.com/weir-go/weir/engine"
)

// ask puts the check under the limit that the request brings.
func (c *check) ask(r *http.Request) {
	c.policy = c.limit.Quota(r)
	var quota engine.Quota
	var err error
	if c.limit.BackendQuota != nil {
		c.backend, err = c.limit.BackendQuota(c.policy)
	}
	if err == nil && c.limit.Limiter != nil {
		quota, err = c.limit.Limiter.Quota(c.policy)
	}
	if err != nil {
		c.failure = fmt.Errorf("httplimit: the Quota of limit %q: %w", c.limit.Name, err)
		c.policy = engine.Blocked()
		if c.limit.Limiter != nil {
			quota, _ = c.limit.Limiter.Quota(c.policy)
		}
	}
	c.key = c.key.With(quota)
}

// isUnlimited reports whether the request has no limit here, so that there is nothing to say about it.
func (c *check) isUnlimited() bool { return c.answered && c.decision == unlimited }

// unlimited is what a limiter says of a request that has no limit.
var unlimited = engine.Decision{Allowed: true, Limit: engine.Unlimited().Limit(), Remaining: engine.Unlimited().Limit()}
