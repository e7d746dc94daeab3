#!/bin/sh
# weir, and nginx that asks it, until Ctrl-C.
cd "$(dirname "$0")" && PATH=$PATH:/usr/sbin
exec ../with-weir ../decide.yaml sh -c 'exec nginx -p "$TMPDIR" -c "$PWD/nginx.conf" -e stderr'
