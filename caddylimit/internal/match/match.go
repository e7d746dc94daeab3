// Package match says which requests a limit is for.
package match

import (
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Load returns what tells whether a request meets one of the matcher sets in a field of the struct that limit points
// to; nil if there are none, so that the limit is for all. A matcher that fails cannot say that the limit is not for a
// request, so it counts as met.
func Load(ctx caddy.Context, limit any, field string) (func(*http.Request) bool, error) {
	var sets caddyhttp.MatcherSets
	modules, err := ctx.LoadModule(limit, field)
	if err == nil {
		err = sets.FromInterface(modules)
	}
	if err != nil {
		return nil, fmt.Errorf("match: %w", err)
	}
	if len(sets) == 0 {
		return nil, nil
	}
	return func(r *http.Request) bool {
		met, err := sets.AnyMatchWithError(r)
		return met || err != nil
	}, nil
}
