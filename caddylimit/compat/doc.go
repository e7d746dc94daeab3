/*
Package compat is the module http.handlers.rate_limit, and the directive rate_limit of the Caddyfile, which is ordered
before basic_auth. It accepts the configuration of mholt/caddy-ratelimit unchanged, and is built instead of that module,
because Caddy cannot have both. docs/caddy.md says what is different.

	rate_limit {
		zone clients {
			key    {remote_host}
			window 1m
			events 100
		}
	}

It does what package caddylimit does, under other names. For features that the original does not have, such as bursts,
costs, shadow mode or RateLimit fields, use package caddylimit.
*/
package compat
