#!/bin/sh
# weir, and a client that asks it.
cd "$(dirname "$0")" || exit
exec ../with-weir weir.yaml go run github.com/weir-go/weir/examples/redisdoor -door 127.0.0.1:6380
