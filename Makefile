# weir: every command a person needs. `make` lists them.

MODULES   := . bench redislimit cmd/weir
BIN       := bin
ADDRESS   := 127.0.0.1:8080
ADMIN     := 127.0.0.1:8081
FUZZTIME  := 10s
SOAKTIME  := 1h
BENCHTIME := 0.2s
ROUNDS    := 6
RESULTS   := $(BIN)/bench

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
BENCHSTAT   := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

# A target is one bash script that stops at the first command that fails.
SHELL       := bash
.SHELLFLAGS := -o pipefail -c

# Every module by its own requirements: those of the libraries that bench/ compares weir
# with, and of the Redis client, are nobody else's. So bench/ and redislimit/ are not in
# go.work either, which is for editors: there they would raise versions for all.
export GOWORK := off

# The tests of redislimit wait for real servers, up to a timeout: one package after the other.
serial = $$([ $$module = redislimit ] && echo -p 1)

# A command for every module in turn.
each = @set -e; for module in $(MODULES); do (cd $$module && $(1)); done

.DEFAULT_GOAL := help
.PHONY: help run build test test-explore test-stress test-proxies test-valkey test-race test-386 cross check vulncheck bench bench-quick bench-full bench-guard bench-proxy bench-go explore fuzz soak clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## start the limiting proxy on 127.0.0.1:8080 and its live page on 127.0.0.1:8081 (1/s, burst 5; ADDRESS=..., ADMIN=... to change)
	$(BIN)/weir serve --listen $(ADDRESS) --admin $(ADMIN)

build: ## build weir, and weir-bench for `weir bench`, into bin/
	cd cmd/weir && go build -o ../../$(BIN)/weir .
	cd bench && go build -o ../$(BIN)/weir-bench ./cmd/weir-bench

test: ## every test: plain, with a browser, a real nginx and real Redis servers, all interleavings of small scenarios, under the race detector, as 32 bits, the cross builds, and that it is no slower
	@command -v chromium chromium-browser google-chrome >/dev/null || .ci/install chromium
	@command -v redis-server >/dev/null && command -v faketime >/dev/null || .ci/install redis-server faketime
	$(call each,go test $(serial) ./...)
	@$(MAKE) --no-print-directory test-explore test-stress test-proxies test-race test-386 cross bench-guard

# -v prints what was explored, a line for each; the rest of its lines say nothing.
explore = { go test -tags explore -timeout 0 -v ./internal/interleave ./fuzz/explore ./fuzz/model $(1) && \
	cd redislimit && go test -tags explore -timeout 0 -v ./internal/lease $(1); } | grep -Ev '^(===|    ---|--- PASS)'

test-explore: ## every interleaving of small scenarios, every mutant, the Spin model (installed when missing and root)
	@command -v spin >/dev/null && command -v gcc >/dev/null || .ci/install spin gcc libc6-dev
	$(call explore)

test-stress: ## the stress tests, goroutines suspended between any two atomic steps
	go test -tags stress -run Stress ./fuzz
	cd redislimit && go test -tags stress ./internal/lease

test-proxies: ## weir behind real nginx, Caddy and HAProxy, and before hypercorn (installed when missing and root)
	@command -v nginx /usr/sbin/nginx >/dev/null || .ci/install nginx-light
	@command -v caddy >/dev/null && command -v haproxy /usr/sbin/haproxy >/dev/null && command -v hypercorn >/dev/null \
		|| .ci/install caddy haproxy python3-hypercorn
	cd cmd/weir && go test -count 1 -run 'Nginx|Prox|Tunnel' ./internal/serve

# Debian 12 has valkey-server among its backports. redistest takes the first redis-server on the PATH.
test-valkey: ## the tests of redislimit with Valkey in the place of Redis (installed when missing, root, and packaged)
	@command -v valkey-server >/dev/null || .ci/install valkey-server
	@mkdir -p $(BIN)/valkey && ln -sf "$$(command -v valkey-server)" $(BIN)/valkey/redis-server
	cd redislimit && PATH="$(CURDIR)/$(BIN)/valkey:$$PATH" go test -count 1 -p 1 ./...

test-race: ## the tests under the race detector (needs a C compiler; installed when missing and root)
	@command -v cc gcc >/dev/null || .ci/install gcc libc6-dev
	$(call each,CGO_ENABLED=1 go test $(serial) -race -short ./...)

# 32-bit programs run on a 64-bit kernel unless that was built without them.
test-386: ## the tests as a 32-bit program, or vet and build where the kernel cannot run one
	@if GOARCH=386 CGO_ENABLED=0 go test -run '^$$' ./atomicbucket >/dev/null 2>&1; \
	then echo "GOARCH=386 go test ./..."; GOARCH=386 CGO_ENABLED=0 go test ./...; \
	else echo "this kernel runs no 32-bit programs: vet and build only"; GOARCH=386 CGO_ENABLED=0 go vet ./... && GOARCH=386 CGO_ENABLED=0 go build ./...; fi

cross: ## build for other systems
	$(call each,GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go vet ./... && GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go build ./... && GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go build ./...)

check: ## what every commit passes: format, vet, staticcheck, tidy modules
	@out=$$(gofmt -l .); [ -z "$$out" ] || { echo "gofmt would change:"; echo "$$out"; exit 1; }
	$(call each,go vet ./...)
	go vet -tags explore ./internal/interleave ./fuzz/explore ./fuzz/model ./shard ./internal/word
	cd redislimit && go vet -tags explore ./internal/lease
	go vet -tags stress ./...
	cd redislimit && go vet -tags stress ./internal/lease
	$(call each,go run $(STATICCHECK) ./...)
	$(call each,go mod tidy -diff)

vulncheck: ## known vulnerabilities of dependencies (needs the network)
	$(call each,go run $(GOVULNCHECK) ./...)

# Prints the table and leaves a page with charts and the figures in bin/.
bench_to = mkdir -p $(BIN) && $(BIN)/weir bench $(1) --json $(RESULTS).json --html $(RESULTS).html

bench: build ## weir beside its floor and other libraries, some eight minutes; a page and JSON in bin/
	$(call bench_to)

bench-quick: build ## the same in two minutes: the targets, and a few libraries
	$(call bench_to,--quick)

bench-full: build ## the same with everything, more than an hour
	$(call bench_to,--full)

bench-guard: ## the ratios to the floor are not twice what they should be, and nothing allocates (seconds)
	cd bench && WEIR_GUARD=1 go test -count 1 ./guard

bench-proxy: build ## what the limiter costs weir, nginx and HAProxy, by wrk, ROUNDS rounds (installed when missing and root), four minutes; JSON in bin/
	@command -v wrk >/dev/null && command -v nginx /usr/sbin/nginx >/dev/null && command -v haproxy /usr/sbin/haproxy >/dev/null \
		|| .ci/install wrk nginx-light haproxy
	cd bench && go build -o ../$(BIN)/weir-bench-proxy ./cmd/weir-bench-proxy
	$(BIN)/weir-bench-proxy --rounds $(ROUNDS) --json $(RESULTS)-proxy.json

.PHONY: bench-overshoot
bench-overshoot: ## how much nodes that share a limit admit together, a process each, by a real redis-server (installed when missing and root), a quarter of an hour; a table and JSON in bin/
	@command -v redis-server >/dev/null || .ci/install redis-server
	cd redislimit && go build -o ../$(BIN)/weir-overshoot ./cmd/weir-overshoot
	$(BIN)/weir-overshoot --json $(RESULTS)-overshoot.json | tee $(RESULTS)-overshoot.md

bench-go: ## the same rows by go test -bench, ROUNDS rounds, compared by benchstat (BENCH=... to choose)
	@ROUNDS=$(ROUNDS) BENCHTIME=$(BENCHTIME) BENCHSTAT=$(BENCHSTAT) .ci/bench

explore: ## every interleaving of a few calls, larger scenarios too (minutes)
	@command -v spin >/dev/null && command -v gcc >/dev/null || .ci/install spin gcc libc6-dev
	$(call explore,-count 1 -large)

fuzz: ## every fuzz target for FUZZTIME each
	@FUZZTIME=$(FUZZTIME) .ci/fuzz $(MODULES)

soak: ## the stress tests for SOAKTIME, goroutines suspended between any two atomic steps
	WEIR_STRESS=$(SOAKTIME) go test -tags stress -run Stress -count 1 -timeout 0 -v ./fuzz

clean: ## remove what was built
	rm -rf $(BIN)
	go clean -testcache
