/*
Package caddylimit limits requests in Caddy. It is the module http.handlers.weir, and the directive weir of the
Caddyfile, which is ordered before basic_auth:

	weir {
		limit clients {
			rate  10/s
			burst 50
		}
	}

A [Handler] has one or several [Limit]s. A request is checked against all limits that match it, all or nothing: if one
limit refuses, the others keep their tokens. Answers have RateLimit fields. For a refused request, the handler returns
the error 429, which handle_errors can handle.

A limit is identified by its name. Handlers of one configuration that use the same name share the limit, and must give
it the same numbers. If the configuration is loaded again, limits with the same name keep what they have counted, so no
client gets a fresh bucket.

Package compat accepts the configuration of mholt/caddy-ratelimit instead. docs/caddy.md is the manual for both.

# Stability

The configuration and the names of metrics follow semantic versions from v0.1.0 on.
*/
package caddylimit
