/*
Package compat is the module http.handlers.rate_limit, and the directive rate_limit of the Caddyfile, which is ordered
before basic_auth. It takes the configuration of mholt/caddy-ratelimit as it is, and is built in its place: Caddy cannot
have both. docs/caddy.md says what is different.

	rate_limit {
		zone clients {
			key    {remote_host}
			window 1m
			events 100
		}
	}

It is package caddylimit under other names: for what is new there, such as bursts, costs, shadow mode or RateLimit
fields, use that.
*/
package compat
