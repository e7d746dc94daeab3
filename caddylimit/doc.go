/*
Package caddylimit limits requests in Caddy. It is the module http.handlers.weir, and the directive weir of the
Caddyfile, which is ordered before basic_auth:

	weir {
		limit clients {
			rate  10/s
			burst 50
		}
	}

A [Handler] has one or several [Limit]s. A request is checked against all that match it, all or nothing: where one
refuses, the others keep their tokens. It answers with RateLimit fields, and refuses by the error 429, which
handle_errors gets.

A limit is known by its name. Handlers of one configuration that name a limit alike share it, and must give it the same
numbers. When the configuration is loaded anew, limits of the same name keep what they have counted: no client has a
fresh bucket.

Package compat takes the configuration of mholt/caddy-ratelimit instead. docs/caddy.md is the manual of both.

# Stability

The configuration follows semantic versions from v0.1.0 on, and so do the names of metrics.
*/
package caddylimit
