// Command caddy is Caddy with the limits of weir: the standard modules, the directive weir, and a directive rate_limit
// that replaces mholt/caddy-ratelimit.
//
//	go build -o caddy ./cmd/caddy
//
// docs/caddy.md shows how to make a program with more modules.
package main

import (
	_ "time/tzdata"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/weir-go/weir/caddylimit"
	_ "github.com/weir-go/weir/caddylimit/compat"
)

func main() { caddycmd.Main() }
