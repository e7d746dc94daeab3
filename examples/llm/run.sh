#!/bin/sh
# weir in front of a server that speaks the APIs of language models.
cd "$(dirname "$0")" || exit
exec ../with-weir weir.yaml sh -c '
	go build -o "$TMPDIR/llm" github.com/weir-go/weir/examples/llm && exec "$TMPDIR/llm" -listen 127.0.0.1:3000'
