#!/bin/sh
# weir, and Traefik that asks it, until Ctrl-C.
cd "$(dirname "$0")" || exit
exec ../with-weir ../decide.yaml traefik --configFile=traefik.yaml
