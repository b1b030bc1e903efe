# Landfall's Makefile. `make help` explains itself.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)

# Everything that is built or fetched once and kept lies outside the clone, so
# that a fresh clone on the same machine is quick.
CACHE := $(or $(LANDFALL_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/landfall)
GOLANGCI_VERSION := $(shell awk '$$1 == "github.com/golangci/golangci-lint/v2" {print $$2}' test/tools/go.mod)
BENCHSTAT_VERSION := $(shell awk '$$1 == "golang.org/x/perf" {print $$2}' test/tools/go.mod)
GOLANGCI := $(CACHE)/golangci-lint-$(GOLANGCI_VERSION)-$(shell go env GOVERSION)
BENCHSTAT := $(CACHE)/benchstat-$(BENCHSTAT_VERSION)-$(shell go env GOVERSION)

# What to run and for how long: make test PKG=./hub/..., make fuzz FUZZTIME=10m,
# make bench BENCH=Gate COUNT=10 BASE=before.txt, make e2e RUN=Drift,
# make soak MINUTES=60,
# make run LISTEN=127.0.0.1:9090
PKG ?= ./...
TIMEOUT ?= 10m
FUZZTIME ?= 1m
MINUTES ?= 5
BENCH ?= .
COUNT ?= 1
BASE ?=
LISTEN ?= 127.0.0.1:8080
RUN ?= .

.PHONY: help
help: ## show what can be made
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' Makefile

.PHONY: build
build: ## build every program into bin/, and bring the ClickHouse library (needs npm)
	mkdir -p bin
	CGO_ENABLED=0 go build $(VERBOSE) -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...
	scripts/fetch-chdb

.PHONY: run
run: VERBOSE = -v
run: build ## a control plane, a hub and a dozen hosts; a rollout, a change, and what to try next (LISTEN)
	CGO_ENABLED=0 go build -trimpath -o bin/demo ./examples/demo
	@exec bin/demo -with-parent -listen $(LISTEN)

.PHONY: demo-check
demo-check: build ## the story that `make run` tells, as a test; part of `make test`
	go test -count 1 -run Story ./examples/demo

# The package whose tests take longest and mostly wait begins first.
ifeq ($(PKG),./...)
FIRST := ./test/system
endif

.PHONY: test
test: build ## build, then run every test with the race detector, and the contract tests
	go test -race -timeout $(TIMEOUT) $(FIRST) $(PKG)
ifeq ($(PKG),./...)
	$(MAKE) --no-print-directory contract
endif

# Modules of their own, because what Argo CD's and Flux' types pin is not ours
# to follow. Nothing in them runs at once with anything else: no race to find,
# and what they share with the programs is built once (the flags of build).
# They require this module, so what its go.mod requires moves theirs (-mod=mod);
# go mod tidy would not do: it asks for the tests of every dependency.
.PHONY: contract
contract: ## our readers of Flux and Argo CD against their own types
	for module in test/contract/*/; do (cd $$module && CGO_ENABLED=0 go test -trimpath -mod=mod ./...); done

# Random repositories and histories, each verdict beside what plain git says; a
# few of them are part of make test. Before them, hostile repositories at full
# size: 1 GB of files, 100,000 branches (5 GB of disk); make test has small ones.
HOSTILE := TestAGigabyteOfFiles|TestManyBranches|TestOddFiles|TestHostileServers
.PHONY: soak
soak: ## hostile repositories at full size; random verdicts, then random names, against plain git, each for MINUTES (5)
	go test -count 1 -v -timeout 30m -run '^($(HOSTILE))$$' ./hub/gitops -full | grep -v -e '=== RUN' -e 'level='
	go test -count 1 -v -timeout 24h -run '^TestAgainstGit$$' ./hub/gitops -soak $(MINUTES)m -seed $$RANDOM$$RANDOM | grep -v -e '=== RUN' -e '    --- PASS' -e 'level='
	go test -count 1 -v -timeout 24h -run '^TestAgainstGit$$' ./hub/catalog -soak $(MINUTES)m -seed $$RANDOM$$RANDOM | grep -v -e '=== RUN' -e '    --- PASS' -e 'level='

.PHONY: e2e-programs
e2e-programs: ## build what the end-to-end tests run: etcd, kube-apiserver, Flux, Argo CD (15 minutes, once)
	scripts/e2e-programs

.PHONY: e2e
e2e: build e2e-programs ## hub and agent with real Flux and Argo CD on a real API server (RUN=regexp)
	go test -tags e2e -count 1 -v -timeout 30m -run '$(RUN)' ./test/e2e

.PHONY: e2e-smoke
e2e-smoke: build ## six of them, for CI
	scripts/e2e-programs smoke
	go test -tags e2e -count 1 -v -short -timeout 10m -run '$(RUN)' ./test/e2e

.PHONY: e2e-bench
e2e-bench: build e2e-programs ## the agent's memory and processor time at 50 and 5,000 Kustomizations
	go test -tags e2e -count $(COUNT) -timeout 1h -run '^$$' -bench '$(BENCH)' -benchtime 1x ./test/e2e | tee bin/e2e-bench.txt

.PHONY: bench
bench: build ## run the benchmarks (BENCH, COUNT); compare with an earlier run by BASE=file
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -timeout 2h $(PKG) | tee bin/bench.txt
ifneq ($(BASE),)
	$(MAKE) --no-print-directory $(BENCHSTAT)
	$(BENCHSTAT) $(BASE) bin/bench.txt
endif

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (1m)
	for file in $$(grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' --exclude-dir='.?*' . | sort); do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]+)\(.*/\1/p' $$file); do \
			echo "$$target in $$(dirname $$file)"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$(dirname $$file); \
		done; \
	done

.PHONY: lint
lint: $(GOLANGCI) ## gofmt, go vet and golangci-lint at its pinned version
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go' | xargs -r ls 2>/dev/null)); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go vet -tags e2e $(PKG)
	$(GOLANGCI) run $(PKG)

.PHONY: generate
generate: ## write generated files anew
	go generate $(PKG)

.PHONY: clean
clean: ## remove what was built; data folders and caches stay
	rm -rf bin

# The linters live in a module of their own, so that their dependencies stay out
# of Landfall's.
$(GOLANGCI): test/tools/go.mod test/tools/go.sum
	mkdir -p $(CACHE)
	cd test/tools && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	touch $@

$(BENCHSTAT): test/tools/go.mod test/tools/go.sum
	mkdir -p $(CACHE)
	cd test/tools && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $@ golang.org/x/perf/cmd/benchstat
	touch $@
