#!/bin/sh
# weir, and Caddy that asks it, until Ctrl-C.
cd "$(dirname "$0")" || exit
exec ../with-weir ../decide.yaml sh -c 'export HOME="$TMPDIR"; exec caddy run --adapter caddyfile --config Caddyfile'
