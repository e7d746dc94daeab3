// Caddy with the limits of weir: its standard modules, the directive weir, and rate_limit in the place of
// mholt/caddy-ratelimit.
//
//	go build -o caddy ./cmd/caddy
//
// A program with other modules, too, is as short: see docs/caddy.md.
package main

import (
	_ "time/tzdata"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/weir-go/weir/caddylimit"
	_ "github.com/weir-go/weir/caddylimit/compat"
)

func main() { caddycmd.Main() }
