#!/bin/sh
# weir, and HAProxy in front of it, until Ctrl-C.
cd "$(dirname "$0")" && PATH=$PATH:/usr/sbin
exec ../with-weir weir.yaml haproxy -db -f app.cfg -f weir.cfg
