# weir: every command a person needs. `make` lists them.

# Those of go.work, and contrib, bench, examples and caddylimit, which have a go.work of their own: the libraries that weir is
# compared with, the frameworks, and Caddy would raise the versions of everybody's dependencies
# (docs/decisions/0001-modules.md).
MODULES   := . limitertest fuzz contrib examples redislimit grpclimit otellimit cmd bench caddylimit
BIN       := bin
ADDRESS   := 127.0.0.1:8080
ADMIN     := 127.0.0.1:8081
FUZZTIME  := 10s
SOAKTIME  := 1h
KILLS     := 1000
BENCHTIME := 0.2s
ROUNDS    := 6
RESULTS   := $(BIN)/bench

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
GOPACKAGES  := golang.org/x/tools/go/packages/gopackages@v0.52.0
BENCHSTAT   := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

# A target is one bash script that stops at the first command that fails.
SHELL       := bash
.SHELLFLAGS := -o pipefail -c
# One stage after the other, each on all cores.
.NOTPARALLEL:

# The go command finds the go.work of each module by itself.
unexport GOWORK
# Without cgo but under the race detector, so that all stages share compiled packages, also those
# before a C compiler is installed.
export CGO_ENABLED := 0

# Compilers and vet collect their garbage less often, which takes some 6 % less time. What they write is the same.
export GOFLAGS := $(strip $(shell go env GOFLAGS) '-toolexec=env GOGC=400')

# Where CI is set, a test whose program is missing fails. WEIR_INSTALL=no says that it may be skipped.
ifeq ($(WEIR_INSTALL),no)
unexport CI
endif

# Where the registry of npm does not answer, npm gives up after a minute.
NPM_INSTALL := npm install --silent --no-audit --no-fund --fetch-retries 1 --fetch-timeout 30000

# The commit goes into the program where git can tell it.
STAMP = -buildvcs=$(shell git rev-parse HEAD >/dev/null 2>&1 && echo auto || echo false)
BUILD = go build -trimpath $(STAMP) -ldflags '-s -w'

# $(call each,NAME,COMMAND) is a stage for every module.
each  = @.ci/each "$(1)" '$(2)' $(MODULES)
stage = @.ci/stage

# The tests of redislimit wait for real servers, up to a timeout: one package after the other, many tests of it at a time.
# They are compiled before that, because -p 1 compiles one after the other, too.
# Those of cmd wait for programs: four packages at a time, the longest first.
# The program of caddylimit is all of Caddy: caddylimit/internal/program builds and runs it, once.
go-test = if [ $$0 = redislimit ]; then go test $(1) -run "^$$" $${PACKAGES:-./...} >/dev/null && go test $(1) -p 1 -parallel 8 $${PACKAGES:-./...}; \
	elif [ $$0 = caddylimit ]; then go test $(1) $$(go list ./... | grep -v /cmd/); \
	elif [ $$0 = cmd ]; then go test $(1) -p 4 ./internal/serve ./weir-envoy ./weir ./internal/audit $${PACKAGES:-./...}; else go test $(1) $${PACKAGES:-./...}; fi

empty :=
space := $(empty) $(empty)

.DEFAULT_GOAL := help
.PHONY: $(shell sed -nE 's/^([a-z0-9-]+):.*/\1/p' $(MAKEFILE_LIST))

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# 1/s, burst 5. ADDRESS=... and ADMIN=... change the addresses.
run: build-weir ## start the limiting proxy on 127.0.0.1:8080, its live page on 127.0.0.1:8081
	$(BIN)/weir serve --listen $(ADDRESS) --admin $(ADMIN) --limit 1/s --burst 5

build: build-weir build-envoy build-bench ## build weir, weir-envoy, and weir-bench for `weir bench`, into bin/

build-weir:
	cd cmd && $(BUILD) -o ../$(BIN)/weir ./weir

# Limits for Envoy from packaging/envoy, gRPC on 127.0.0.1:8081, the live page on 127.0.0.1:6070.
run-envoy: build-envoy ## answer Envoy's rate limit service with the rules in packaging/envoy
	GRPC_HOST=127.0.0.1 HOST=127.0.0.1 DEBUG_HOST=127.0.0.1 DEBUG_KEYS=full DEBUG_RESET=true LOG_LEVEL=info USE_STATSD=false \
		RUNTIME_ROOT=packaging RUNTIME_APPDIRECTORY=envoy $(BIN)/weir-envoy

build-envoy:
	cd cmd && $(BUILD) -o ../$(BIN)/weir-envoy ./weir-envoy

# Minutes, the first time, and with the flags of tests, which so need not compile it again. In a folder of its own, which
# tests search before the PATH, and bench-proxy behind it.
build-caddy: ## build a caddy with the limits of weir, into bin/caddy/
	cd caddylimit && go build $(STAMP) -o ../$(BIN)/caddy/caddy ./cmd/caddy

build-bench:
	cd bench && $(BUILD) -o ../$(BIN)/weir-bench ./cmd/weir-bench

# With a browser, a real nginx and real Redis servers, and the guard that weir is no slower. WEIR_INSTALL=no installs
# nothing.
test: begin test-begins $(BIN)/modules programs test-modules test-explore test-stress bench-guard ## the tests of every module, long ones in part, and interleavings of small scenarios (ten minutes)
	@.ci/summary

test-begins:
	@echo "make test: the tests of $(MODULES), long ones in part, interleavings of small scenarios, stress, and the guard of the speed. make test-all adds the long tests in full, all interleavings of these scenarios, mutants, a sample of the mutation score, the Spin model, the race detector, 32 bits, the environment of shared tables and the builds for other systems."

test-all: test test-more ## the same in full, every mutant, a sample of the mutation score, the Spin model, race detector, 32 bits, shared tables in trouble, cross builds (an hour)
	@.ci/summary

test-more: test-whole test-interleavings test-mutate test-llm test-mutants test-race test-386 test-environment cross site # what test-all adds

begin: # once for all targets of a call, or of .ci/run
	@mkdir -p $(BIN) && [ -n "$$WEIR_UNTIL" ] || rm -f $(BIN)/stages $(BIN)/skipped

# The go command downloads as many modules at a time as it may use threads. A module that cannot be
# downloaded is no fault here: the command that needs it says so.
$(BIN)/modules: $(MODULES:=/go.mod) go.work $(wildcard */go.work)
	$(stage) downloads bash -ec 'export GOMAXPROCS=32; for module in $(MODULES); do \
		(cd $$module && go list -m all && go list -deps -test ./...) >/dev/null 2>$@ || { cat $@; rm $@; }; done'

programs: begin
	@# Without dbus-x11 its dependencies want the session bus of systemd, and that an upgrade of systemd.
	@.ci/install chromium,chromium-browser,google-chrome "the live page in a browser" chromium dbus-x11
	@.ci/install redis-server,valkey-server "limits in real Redis servers" redis-server
	@.ci/install faketime "Redis servers whose clock leaps" faketime
	@.ci/install nginx "weir behind a real nginx" nginx-light
	@# Always: one that is installed may be too old for the configurations of the documents.
	@$(MAKE) --no-print-directory build-caddy
	@.ci/install haproxy "weir behind a real HAProxy" haproxy
	@.ci/install redis-cli "the door for clients of Redis" redis-tools
	@python3 -c 'import redis' 2>/dev/null || .ci/install python3-redis "the door for clients of Redis, from Python" python3 python3-redis
	@.ci/install promtool "the alerts and the board, by promtool" prometheus
	@.ci/install help2man "the man pages" help2man
	@.ci/install hypercorn "an upstream that changes the protocol" python3-hypercorn

# What -short leaves out is part of test-whole. No stage but those of make check has vet, which would look at all
# dependencies, those of Caddy among them.
test-modules: begin
	$(call each,test,$(call go-test,-short -vet=off))

test-whole: begin ## the tests that make test shortens or skips, in full
	$(call each,whole,$(CURDIR)/.ci/whole -vet=off $$([ $$0 != redislimit ] || echo -p 1 -parallel 8) $$([ $$0 != cmd ] || echo -p 4))

# Go keeps the results of tests, and notices changes of files in the module of the test only: what reads documents from
# another module runs again here.
test: test-documents
test-documents: begin ## what the documents say: links, commands, programs and tables
	$(stage) documents bash -c 'go test -short -vet=off ./docs & docs=$$!; cd cmd && go test -vet=off -count 1 -run "Document|README" ./weir \
	&& go test -vet=off -count 1 -run "Document|Operations|Described" ./internal/rulefile && go test -vet=off -count 1 -run "Behind" ./internal/serve \
	&& cd ../bench && go test -vet=off -count 1 -run "Figures" ./report && cd ../examples && go test -vet=off -count 1 -run "Scripts" . \
	&& cd ../otellimit && go test -vet=off -count 1 -run "Document" .; others=$$?; wait $$docs && exit $$others'

# It never compiles the reference: the checkout has bin/ratelimit, which its own Makefile makes, and for the suite
# bin/integration.test (docs/envoy.md).
REFERENCE :=
# Sphinx, of Debian, whose search needs no server. A link that leads nowhere fails, and so does a page that needs the network.
site: begin ## the documents as a site in bin/site, which can be read without a network
	@/usr/bin/python3 -c 'import furo, myst_parser' 2>/dev/null || .ci/install none "the site" python3-sphinx python3-myst-parser furo
	@if /usr/bin/python3 -c 'import furo, myst_parser' 2>/dev/null; then .ci/stage site bash -ec \
		'rm -rf $(BIN)/site && sphinx-build -q -W --keep-going -c packaging/site -b html . $(BIN)/site && \
		if grep -rlE "(<script[^>]* src|<img[^>]* src|<link[^>]* href)=\"https?:" $(BIN)/site --include="*.html"; then \
			echo "these pages need a network"; exit 1; fi' || exit; echo "open $(BIN)/site/index.html"; fi

test-envoy-reference: ## weir-envoy beside envoyproxy/ratelimit: its suite, and random questions to both (REFERENCE=a checkout)
	@if [ -z "$(REFERENCE)" ]; then \
		echo "test-envoy-reference: skipped: REFERENCE=... is not set to a checkout of envoyproxy/ratelimit (docs/envoy.md)"; \
	else cd cmd && WEIR_ENVOY_REFERENCE=$(abspath $(REFERENCE)) go test -count 1 -v -timeout 30m ./internal/envoy/reference; fi

# Packages of Debian and npm. The test is not part of make test.
test-frameworks: begin ## spellings of keys, by what real frameworks of six languages read (two minutes)
	@CI=1 .ci/install php "the spellings that PHP reads" php-cli
	@CI=1 .ci/install ruby "the spellings that Rack reads" ruby
	@CI=1 .ci/install node,npm "the spellings that Express and Fastify read" nodejs npm
	@/usr/bin/python3 -c 'import django, fastapi, flask, tornado, uvicorn' && ruby -e 'require "rack"; require "webrick"' || \
		CI=1 .ci/install none "the spellings that frameworks read" python3-django python3-fastapi python3-flask python3-tornado uvicorn ruby-rack ruby-webrick
	@mkdir -p $(BIN)/frameworks && cp cmd/internal/serve/testdata/frameworks/package.json $(BIN)/frameworks && $(NPM_INSTALL) --prefix $(BIN)/frameworks
	cd cmd && WEIR_NODE_MODULES=$(abspath $(BIN)/frameworks/node_modules) go test -tags frameworks -count 1 -run TestFrameworks -v ./internal/serve

# Packages of npm. Without node or the network it says that it is skipped.
test-llm: begin ## the SDKs of OpenAI, Anthropic and Ollama through weir, in front of examples/llm
	@.ci/install node,npm "the SDKs of language models" nodejs npm
	@mkdir -p $(BIN)/llm && cp examples/llm/package.json $(BIN)/llm && \
	if ! command -v npm >/dev/null || ! $(NPM_INSTALL) --prefix $(BIN)/llm; then \
		echo "npm: the SDKs cannot be installed. Skipped: the SDKs of language models." | tee -a $(BIN)/skipped >&2; \
	else .ci/stage "SDKs of language models" bash -c \
		'cd examples && WEIR_LLM_NODE_MODULES=$(abspath $(BIN)/llm/node_modules) go test -count 1 -run "TestSDKs|TestLLM" ./llm'; fi

# A scheduler has a process for itself: two processes explore the scenarios of fuzz/explore, half of them each. They take a
# seventh less time when they collect their garbage less often.
# $(call halves,FLAGS,THEN) is their shell command, and what the second process runs then.
explorer = GOGC=400 go test -vet=off -tags explore -timeout 0 -run '^Test[^M]'
halves = WEIR_EXPLORE=1/2 $(explorer) $(1) ./fuzz/explore & one=\$$!; WEIR_EXPLORE=2/2 $(explorer) $(1) ./fuzz/explore $(2); two=\$$?; wait \$$one && exit \$$two
test-explore: begin ## every interleaving of small scenarios, and 5,000 schedules of larger ones
	$(stage) explore bash -c "$(call halves,-short,&& $(explorer) ./internal/interleave ./internal/spread ./atomicbucket ./shard ./redislimit/internal/lease \
	&& go test -vet=off -tags explore -run EveryStep ./engine)"

test-interleavings: begin ## every interleaving of all scenarios but those of make explore
	$(stage) interleavings bash -c "$(halves)"

# -v prints what was explored, a line for each; the rest of its lines say nothing.
explored = go test -vet=off -tags explore -timeout 0 -v $(1) | grep --line-buffered -Ev '^(=== | +---|--- PASS)'

test-mutants: begin programs-model ## every mutant of every rule is found, and the Spin model
	$(stage) mutants bash -c "set -o pipefail; export GOGC=400; $(call explored,-run 'TestMutants|TestModel' ./shard ./engine ./internal/spread ./fuzz/explore ./fuzz/model ./redislimit/internal/lease)"

programs-model: begin
	@.ci/install spin "the model of the protocol" spin
	@.ci/install gcc "the model of the protocol" gcc libc6-dev

explore: programs-model ## every interleaving, also of larger scenarios, mutants, the model (an hour)
	$(call explored,-count 1 ./internal/interleave ./internal/spread ./shard ./fuzz/explore ./fuzz/model ./redislimit/internal/lease -large)

# Other changes each day. test-all tries more of them.
CHANGES := 8
test-all: CHANGES := 60
test-mutate: begin ## a sample of the mutation score: small changes of atomicbucket, shard and engine
	$(stage) "mutation score" bash -c 'cd fuzz && go test -vet=off -count 1 ./mutate && go run ./mutate -sample $(CHANGES)'

mutate: ## the small changes of atomicbucket, shard and engine that were not tried yet, and which of them no test notices (hours, the first time)
	mkdir -p $(BIN) && cd fuzz && go run ./mutate

# Real servers with known limits, a minute each and some at a time, near and with 60 ms of delay. npm gets two packages. The
# test is not part of make test.
test-audit: begin build-caddy ## weir audit finds the limits of configured servers: weir, nginx, HAProxy, Caddy, Node and Go (ten minutes)
	@CI=1 .ci/install nginx "a server to audit" nginx-light
	@CI=1 .ci/install haproxy "a server to audit" haproxy
	@CI=1 .ci/install node,npm "servers to audit" nodejs npm
	@$(NPM_INSTALL) --prefix $(BIN)/audit express express-rate-limit rate-limiter-flexible
	cd bench && go build -o ../$(BIN)/weir-limited ./cmd/weir-limited
	cd cmd && WEIR_BIN=$(abspath $(BIN)) WEIR_NODE_MODULES=$(abspath $(BIN)/audit/node_modules) go test -tags audit -count 1 -parallel 7 -timeout 30m -run TestServers -v ./internal/audit

# Each library in a process of its own. docs/audit.md explains what is found.
audit: ## what the libraries of the benchmark promise, and what limitertest finds (minutes)
	cd bench && WEIR_AUDIT=1 go test -count 1 -timeout 30m -run TestLeague -v ./league

# As root, which mounts memory and starts processes of other users. Elsewhere it prints what it skips.
test-environment: begin ## shared tables in little memory, beside processes that stop, and in the hands of others (a minute)
	$(stage) environment go test -vet=off -tags environment -run 'Environment|TimeNamespaces|ClockThatRanAhead|AheadOfTheClock|FoldersOfOthers|LinksOfOthers' ./engine ./internal/sharedfile

test-stress: begin ## the stress tests, goroutines suspended between any two atomic steps
	$(stage) stress go test -vet=off -tags stress -run Stress ./fuzz ./internal/spread ./redislimit/internal/lease

# Debian 12 has valkey-server among its backports. redistest takes the first redis-server on the PATH.
test-valkey: begin ## the tests of redislimit with Valkey in the place of Redis
	@CI=1 .ci/install valkey-server "Valkey in the place of Redis" valkey-server
	@mkdir -p $(BIN)/valkey && ln -sf "$$(command -v valkey-server)" $(BIN)/valkey/redis-server
	cd redislimit && PATH="$(CURDIR)/$(BIN)/valkey:$$PATH" go test -count 1 -p 1 -parallel 8 ./...

# But the packages whose tests start no goroutine, other than to wait for a process: the detector could find nothing there.
# Single tests of that kind leave themselves out (internal/testrace). What weir audit computes is not instrumented: it
# starts no goroutine, what it is given is its own, and its tests take a tenth of the time.
alone := atomicbucket docs docs/figures httplimit/reading internal/schemata internal/spelling internal/word \
	limitertest/check redislimit/sim redislimit/internal/script \
	$(addprefix cmd/internal/,accesslog audit/fit envoy/config replay report rulefile rules suggest trace usagelog) \
	$(addprefix bench/,child cmd/weir-bench cmd/weir-bench-instructions cmd/weir-bench-proxy floor guard league peers proxy report result run target workload)
computes := cmd/internal/audit/fit limitertest/check
test-race: begin ## the tests under the race detector (needs a C compiler)
	@.ci/install cc,gcc "the race detector" gcc libc6-dev
	@! grep -E '^\s+go |\.Go\(|\.Parallel\(|RunParallel|httptest\.New\w*Server\(' $(wildcard $(patsubst %,%/*.go,$(sort $(alone) $(computes)))) | grep -vF 'cmd.Wait()' || \
		{ echo "These start goroutines: their package is not alone, in the Makefile."; exit 1; }
	$(call each,race,if command -v cc gcc >/dev/null; then export CGO_ENABLED=1; \
		export PACKAGES="$$(go list ./... | grep -vE "weir/($(subst $(space),|,$(alone)))$$")"; \
		$(call go-test,-race -short -vet=off -timeout 30m $$([ $$0 != cmd ] || echo $(computes:%=-gcflags=github.com/weir-go/weir/%=-race=false))); fi)

# 32-bit programs run on a 64-bit kernel unless that was built without them. Garbage would use up their addresses. The
# tests of documents do not depend on the size of a word.
test-386: begin ## the tests, long ones in part, as a 32-bit program, or vet and build where none can run
	$(stage) "32 bits" bash -c 'export GOARCH=386 GOMEMLIMIT=1GiB; if go test -vet=off -run "^$$" ./internal/tsc ./atomicbucket >/dev/null 2>&1; \
	then go test -vet=off -short $$(go list ./... ./fuzz/... | grep -v /docs); \
	else echo "this kernel runs no 32-bit programs: vet and build only"; go vet ./... ./fuzz/... && go build ./... ./fuzz/...; fi'

# What has assembly is built and vetted, too.
cross: begin ## check that all builds for other systems
	GOBIN=$(abspath $(BIN)) go install $(GOPACKAGES)
	$(stage) "cross linux/arm64" bash -c 'export GOOS=linux GOARCH=arm64; \
		assembly=$$(go list -f "{{if .SFiles}}{{.ImportPath}}{{end}}" ./...) && go build $$assembly && go vet $$assembly && .ci/typecheck linux/arm64 work'
	$(stage) "cross darwin/arm64" .ci/typecheck darwin/arm64 work
	$(stage) "cross freebsd/amd64" .ci/typecheck freebsd/amd64 work
	$(stage) "cross windows/amd64" bash -c '.ci/typecheck windows/amd64 work && cd bench && ../.ci/typecheck windows/amd64 ./... && cd ../examples && ../.ci/typecheck windows/amd64 ./...'

check: begin $(BIN)/modules ## what every commit passes: format, vet, staticcheck, tidy modules (minutes)
	@out=$$(gofmt -l .); [ -z "$$out" ] || { echo "gofmt would change:"; echo "$$out"; exit 1; }
	$(stage) "plain go commands" .ci/unchanged .ci/plain $(MODULES)
	$(stage) "vet -tags explore" go vet -tags explore ./internal/interleave ./internal/spread ./atomicbucket ./engine ./fuzz/explore ./fuzz/model ./shard ./internal/word ./redislimit/internal/lease
	$(stage) "vet -tags environment" go vet -tags environment ./engine
	$(stage) "vet -tags audit" bash -c "cd cmd && go vet -tags audit ./internal/audit"
	$(stage) "vet -tags stress" go vet -tags stress ./internal/word
	$(stage) staticcheck bash -c 'go run $(STATICCHECK) work && cd bench && go run $(STATICCHECK) ./... && cd ../examples && go run $(STATICCHECK) ./... && cd ../contrib && go run $(STATICCHECK) ./... \
	&& cd ../caddylimit && go run $(STATICCHECK) ./internal/zone ./internal/program ./internal/testprogram'
	$(stage) "tidy modules" .ci/tidy -diff $(MODULES)
	$(stage) "width of comments" go test -count 1 -run Wider ./docs

tidy: ## go mod tidy for every module, and the sums of the workspaces
	.ci/tidy $(MODULES)
	rm -f go.work.sum contrib/go.work.sum bench/go.work.sum examples/go.work.sum caddylimit/go.work.sum
	go list -m all >/dev/null && go list -deps -test work >/dev/null
	for module in contrib bench examples caddylimit; do (cd $$module && go list -m all >/dev/null && go list -deps -test ./... >/dev/null) || exit; done

# It writes the changelog, too. Without REALLY=yes it says what it would do.
release: ## set versions, commit, tag VERSION=v1.2.3; REALLY=yes does it (releasing.md)
	.ci/release "$(VERSION)" $(if $(REALLY),yes)

release-check: begin ## import and install what would be published, from a proxy made of the tree
	$(stage) "release check" .ci/release check

vulncheck: begin ## known vulnerabilities of dependencies (needs the network)
	$(call each,vulncheck,go run $(GOVULNCHECK) ./...)

# Prints the table and leaves a page with charts and the figures in bin/. The access log is that of WEIR_ACCESS_LOG, or an
# excerpt of a public one.
EXCERPT := $(CURDIR)/cmd/internal/replay/testdata/apache_access_excerpt.log
bench_to = mkdir -p $(BIN) && WEIR_ACCESS_LOG=$${WEIR_ACCESS_LOG:-$(EXCERPT)} $(BIN)/weir bench $(1) --json $(RESULTS).json --html $(RESULTS).html

# A page and JSON in bin/.
bench: build ## weir beside its floor and other libraries, some forty minutes
	$(call bench_to)

bench-quick: build ## the same in two minutes: the targets, and a few libraries
	$(call bench_to,--quick)

bench-full: build ## the same with everything, an hour and a half
	$(call bench_to,--full)

bench-guard: begin ## the ratios to the floor and the instructions of a decision are within bounds, nothing allocates (seconds)
	$(stage) "bench guard" bash -c 'cd bench && WEIR_GUARD=1 go test -vet=off -count 1 -p 1 ./guard ./cmd/weir-bench-instructions'

bench-instructions: ## instructions, loads and stores of a decision (Linux on amd64)
	cd bench && go run ./cmd/weir-bench-instructions

# wrk and the proxies are installed when missing and root, but Caddy is built. JSON in bin/.
bench-proxy: build ## what the limiter costs weir, nginx and HAProxy, by wrk, eight minutes
	@CI=1 .ci/install wrk "the load" wrk
	@CI=1 .ci/install nginx "one of the proxies" nginx-light
	@CI=1 .ci/install haproxy "one of the proxies" haproxy
	@command -v caddy >/dev/null || $(MAKE) build-caddy
	cd bench && go build -o ../$(BIN)/weir-bench-proxy ./cmd/weir-bench-proxy
	PATH="$$PATH:$(CURDIR)/$(BIN)/caddy" $(BIN)/weir-bench-proxy --rounds $(ROUNDS) --json $(RESULTS)-proxy.json

# redis-server, redis-benchmark and taskset are installed when missing and root.
bench-redis-door: build-weir ## CL.THROTTLE in weir beside SET in redis-server, a core each, a minute
	@CI=1 .ci/install redis-server "what weir is measured beside" redis-server
	@CI=1 .ci/install redis-benchmark "the load" redis-tools
	@CI=1 .ci/install taskset "a core for each" util-linux
	@ROUNDS=$(ROUNDS) BIN=$(BIN) .ci/bench-redis-door | tee $(RESULTS)-redis-door.txt

# On one core and on all. The rounds are in bin/, the table is for docs/benchmarks/envoy.md.
bench-envoy: ## what weir-envoy costs a gRPC server that does nothing, by turns, a minute
	@mkdir -p $(BIN) && cd cmd && go test -c -o ../$(BIN)/envoy.test ./internal/envoy
	cd cmd && for round in $$(seq $(ROUNDS)); do \
		../$(BIN)/envoy.test -test.run '^$$' -test.bench Server -test.cpu 1,$$(nproc); done >../$(RESULTS)-envoy.txt
	go run $(BENCHSTAT) -row /gomaxprocs -col /server $(RESULTS)-envoy.txt

# A process for each node, and a real redis-server, which is installed when missing and root. Tables, the last two of them
# as docs/distributed.md has them, and JSON in bin/. OVERSHOOT=--quick takes five minutes, with --loads TEXT a part of it.
bench-overshoot: ## how much nodes that share a limit admit together, a quarter of an hour
	@CI=1 .ci/install redis-server "the store" redis-server
	cd redislimit && go build -o ../$(BIN)/weir-overshoot ./cmd/weir-overshoot
	$(BIN)/weir-overshoot $(OVERSHOOT) --json $(RESULTS)-overshoot.json | tee $(RESULTS)-overshoot.md

# Each with a redis-server of its own for a while, which is installed when missing and root.
bench-stores: ## redislimit beside other limiters that keep their state in Redis, two minutes
	@CI=1 .ci/install redis-server "the store" redis-server
	cd bench && go build -o ../$(BIN)/weir-bench-stores ./cmd/weir-bench-stores
	$(BIN)/weir-bench-stores --docs docs/distributed.md

# BENCH=... chooses the rows.
bench-go: ## the same rows by go test -bench, ROUNDS rounds, compared by benchstat
	@ROUNDS=$(ROUNDS) BENCHTIME=$(BENCHTIME) BENCHSTAT=$(BENCHSTAT) .ci/bench

fuzz: ## every fuzz target for FUZZTIME each
	@FUZZTIME=$(FUZZTIME) .ci/fuzz $(MODULES)

soak: ## stress tests for SOAKTIME, goroutines suspended between any two atomic steps
	WEIR_STRESS=$(SOAKTIME) go test -tags stress -run Stress -count 1 -timeout 0 -v ./fuzz

kills: ## kill processes of a shared table KILLS times, at any instruction
	WEIR_TEST_KILLS=$(KILLS) go test -run 'TestShared((Processes|Setters|InFlight)Killed|BesideC)$$' -count 1 -timeout 0 -v ./engine

clean: ## remove what was built
	rm -rf $(BIN)
	go clean -testcache
