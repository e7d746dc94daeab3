// Package match selects the requests to which a limit applies.
package match

import (
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Load returns a function that reports whether a request meets one of a limit's matcher sets. The argument limit is a
// pointer to a struct. The argument field is the name of the struct's field with the sets. Without matcher sets, the
// limit applies to all requests, and Load returns nil. A matcher that fails counts as met, so that a client cannot
// escape the limit by an error.
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
