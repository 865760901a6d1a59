# Everything here needs Go and nothing else, except where a target says so.
GO       ?= go
LINT_VERSION := v2.15.0
LINT     := bin/golangci-lint-$(LINT_VERSION)
MODULES  := sdk/go examples/plugins/redact examples/plugins/index examples/plugins/guard examples/plugins/lookup \
            examples/plugins/budget examples/plugins/jsonfix examples/plugins/memo \
            summarizers/modules/summarizers summarizers/modules/admission plugins/testdata/ledger plugins/testdata/teller \
            host/testdata/bench/hook host/testdata/bench/pdk

# The race detector does not watch what takes most of the time of a test and works in one goroutine, or is the C of SQLite, translated to Go,
# of whose memory it does not know: the compiler of wazero, and our readers and writers of Wasm. See RATIONALE.md.
WAZEVO := github.com/tetratelabs/wazero/internal/engine/wazevo
UNWATCHED := modernc.org/sqlite/lib modernc.org/libc $(WAZEVO)/ssa $(WAZEVO)/frontend $(WAZEVO)/backend/... \
             github.com/tetratelabs/wazero/internal/leb128 github.com/mortise-dev/mortise/internal/wasm/...
RACE := -race $(UNWATCHED:%=-gcflags=%=-race=false)

# Test binaries without what debuggers read, and without a part of go vet, which lint contains.
QUICK := -ldflags=-w -vet=off

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Runs all tests with these flags, and lists those that were skipped, of which go test says nothing.
SKIPPED := $(CURDIR)/bin/skipped
tests = @mkdir -p bin; rm -f $(SKIPPED); echo "$(GO) test $(1)"; \
	MORTISE_SKIPPED=$(SKIPPED) $(or $(TEST),$(GO) test) $(1) $(2); code=$$?; $(list-skipped); test $$code = 0 || exit $$code
list-skipped = if test -s $(SKIPPED); then echo "SKIPPED:"; sort -u $(SKIPPED) | sed 's/^/  /'; else echo "no test was skipped"; fi

# The demo compiles what its speed does not depend on without optimization, and lets the compiler use more memory: in half the time. It needs no C compiler.
PLAINLY := $(foreach p,all=-N_-l runtime/...= internal/...= github.com/tetratelabs/...= github.com/tetratelabs/wazero/internal/engine/interpreter=-N_-l \
             github.com/mortise-dev/mortise/internal/wasm/...=,'-gcflags=$(subst _, ,$p)')

.PHONY: demo
demo: ## mortise serve at work, offline: runs, compactions, a swap and its roll-back
	@CGO_ENABLED=0 GOGC=400 $(GO) run -ldflags=-w $(PLAINLY) ./examples/serve

.PHONY: demo-replay
demo-replay: ## replay a recorded session through plugins and background compaction
	$(GO) run ./cmd/mortise run --config examples/mortise.yaml examples/sessions/review.jsonl

.PHONY: test
test: ## run the tests, without the race detector and those that take long (make check runs all)
	$(call tests,-short $(QUICK),./...)

.PHONY: check
check: build lint tidy generated guests-check wat-check c-check test-plain test-race live modules bench-once release-check clean-tree ## all that CI runs

.PHONY: build
build: ## build, and type-check for the other platforms that are promised
	$(GO) build ./...
	$(GO) run ./internal/platforms darwin/arm64 windows/amd64 linux/arm64

.PHONY: vet
vet: ## go vet, which is a part of lint
	$(GO) vet ./...

.PHONY: lint
lint: $(LINT) ## golangci-lint, formatters included
	$(LINT) run --allow-parallel-runners ./...
	$(LINT) fmt --diff ./...

$(LINT):
	@mkdir -p bin
	GOBIN=$(CURDIR)/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv bin/golangci-lint $(LINT)

.PHONY: tidy
tidy: ## go.mod and go.sum are what the code needs
	$(GO) mod tidy -diff
	@for m in $(MODULES); do echo "tidy $$m"; (cd $$m && $(GO) mod tidy -diff) || exit 1; done

.PHONY: generate
generate: ## write the SDK's copy of the ABI and its codec
	$(GO) run ./internal/abigen

.PHONY: generated
generated: ## generated files are up to date
	$(GO) run ./internal/abigen -check

.PHONY: guests
guests: ## build the guests with the Go toolchain alone, and write their checksums
	$(GO) run ./internal/guestbuild

.PHONY: guests-check
guests-check: ## rebuild the guests and compare them with what is committed
	$(GO) run ./internal/guestbuild -check

.PHONY: wat-check
wat-check: ## rebuild the .wat test modules and compare (needs wabt)
	@if command -v wat2wasm >/dev/null; then testdata/wat.sh --check; \
	else echo "SKIPPED: wat-check: wat2wasm is not installed (Debian: apt-get install wabt)"; \
	     test -z "$$CI" || { echo "wat-check must run in CI"; exit 1; }; fi

.PHONY: c-check
c-check: ## rebuild the guest in C and compare (needs clang and lld)
	@if command -v clang-19 >/dev/null && command -v wasm-ld-19 >/dev/null; then host/testdata/bench/c/build.sh --check; \
	else echo "SKIPPED: c-check: clang-19 or wasm-ld-19 is not installed (Debian: apt-get install clang-19 lld-19)"; \
	     test -z "$$CI" || { echo "c-check must run in CI"; exit 1; }; fi

.PHONY: warm
warm: ## compile the guests into the caches of the tests, which takes ten times as long under the race detector
	$(GO) run ./internal/warm

# What test-race leaves out, because the race detector would find nothing that it does not find elsewhere: the command, whose server and reloads
# internal/e2e runs under it; compilers, generators, readers and what is calculated from texts, which work in one goroutine. See RATIONALE.md.
PLAIN := ./internal/archtest ./internal/cli ./internal/guestbuild ./internal/wasm/... ./summarizers/bundled ./compaction/eval/... ./compaction/ledger ./llm/transcript

.PHONY: test-plain
test-plain: TEST := $(GO) run ./internal/parity --
test-plain: ## run all tests whole, those that take long included, without the race detector, and count the specified behaviours
	$(call tests,$(QUICK) -shuffle=on -timeout 20m,./...)

.PHONY: test-race
test-race: warm ## run the tests with the race detector as make test does, shuffled, without those that have no concurrency (needs a C compiler)
	$(call tests,$(RACE) -short $(QUICK) -shuffle=on -timeout 20m,$$($(GO) list ./... | grep -vxF "$$($(GO) list $(PLAIN))"))

.PHONY: e2e
e2e: ## 300 runs over HTTP on each store while servers are killed, 50 times on SQLite (some minutes; make test does a small one)
	MORTISE_E2E=full $(GO) test -count=1 -v -timeout 30m -run TestServe_killed ./internal/e2e

.PHONY: npm-modules
npm-modules: ## from npm: plugins of Extism's kit for AssemblyScript into bin/npm, an MCP server, and clients of AG-UI and ACP
	host/testdata/npm/build.sh bin/npm
	agent/mcp/testdata/npm/build.sh bin/npm-mcp
	serve/testdata/npm/build.sh bin/npm-agui
	internal/e2e/testdata/npm/build.sh bin/npm-acp

.PHONY: npm-agents
npm-agents: ## from npm: Claude Code, Codex and pi into bin/npm-agents, for make live (960 MB)
	internal/agents/install.sh bin/npm-agents

.PHONY: npm-more-agents
npm-more-agents: ## from npm: Gemini CLI, Qwen Code, Copilot CLI and opencode into bin/npm-agents/more, for make live (700 MB)
	internal/agents/install.sh bin/npm-agents/more more

.PHONY: live
live: export MORTISE_LIVE = 1
live: ## run the real agents that npm-agents installs through the proxy and with hooks
	$(call tests,$(QUICK) -count=1 -timeout 20m -run '^TestLive($$|_)' -p 1,./proxy ./hook/live ./internal/cli)

.PHONY: model
model: ## compare 10,000 random schedules on every store with the model in memory, with the race detector (a long run)
	MORTISE_TEST_MAILBOX_SCHEDULES=10000 $(GO) test $(RACE) -count=1 -p 1 -v -timeout 90m -run '^TestModel$$' ./mailbox/mailboxtest ./store/memstore
	MORTISE_TEST_MAILBOX_SCHEDULES=10000 $(GO) test $(RACE) -count=1 -p 1 -v -timeout 90m -run '^TestMailbox$$/^model$$' ./store/sqlitestore ./store/pgstore ./store/natsstore

.PHONY: modules
modules: ## test the SDK and the guests natively, and vet them for Wasm
	@mkdir -p bin; rm -f $(SKIPPED); for m in $(MODULES); do echo "module $$m"; \
	  (cd $$m && $(GO) vet ./... && GOOS=wasip1 GOARCH=wasm $(GO) vet ./... && MORTISE_SKIPPED=$(SKIPPED) $(GO) test -count=1 ./...) || exit 1; done; \
	$(list-skipped)

.PHONY: parity
parity: ## run the tests that show the specified behaviours, and count them
	$(GO) run ./internal/parity

.PHONY: mutants
mutants: ## break what the rows of testdata/mutants.txt name, one at a time, and expect their tests to fail (some minutes)
	$(GO) run ./internal/mutants

.PHONY: bench
bench: ## run the benchmarks, six counts
	$(GO) test -run '^$$' -bench . -benchmem -count 6 ./...

.PHONY: bench-host
bench-host: ## the speed table of docs/performance.md: six counts against bare wazero and go-sdk
	$(GO) test ./host ./plugins -run '^$$' -bench 'Engine|Instance|Hostile|Hook|Metering' -count 6

# Recordings and probes of others, which are not part of the repository.
SHARED := $(or $(MORTISE_SHARED),../shared)/data

.PHONY: compact-eval
compact-eval: ## the tables of docs/compaction.md: what each compaction policy keeps
	@if test -d $(SHARED)/probes; then \
	  $(GO) run ./cmd/mortise compact eval --quiet --budgets 10% \
	    --probes $(SHARED)/probes $(SHARED)/transcripts && \
	  $(GO) run ./cmd/mortise compact eval --quiet --budgets 10% $(SHARED)/transcripts/pi-mono && \
	  $(GO) run ./cmd/mortise compact eval --quiet --future $(SHARED)/transcripts/claude-code-compactions; \
	else echo "SKIPPED: compact-eval on real inputs: $(SHARED)/probes is missing; set MORTISE_SHARED to the folder that holds data/"; fi
	@$(GO) run ./cmd/mortise compact eval --quiet --budgets 10% examples/sessions

.PHONY: bench-once
bench-once: ## run each benchmark once, so that they do not rot
	cd mailbox/testdata/river && $(GO) vet ./... && $(GO) mod tidy -diff
	@echo "each benchmark once"; out=$$(MORTISE_BENCH_BACKLOG=1000 $(GO) test $(QUICK) -run '^$$' -bench . -benchtime 1x \
	  $$(git grep -l '^func Benchmark' -- '*_test.go' ':!:mailbox/testdata/river' $(MODULES:%=':!:%') | xargs -n 1 dirname | sort -u | sed 's,^,./,') 2>&1) || { echo "$$out" | grep -A 3 FAIL; exit 1; }

.PHONY: release
release: ## archives for five platforms, SBOMs and checksums into dist/ (VERSION=v1.2.3, default: the tag of the commit)
	$(GO) run ./internal/release -version '$(VERSION)'

.PHONY: release-check
release-check: ## serve the commit as a module from a folder: go install of the command, go mod tidy and build of an embedder
	$(GO) run ./internal/release -check

.PHONY: clean-tree
clean-tree: ## nothing was left changed or untracked
	@test -z "$$(git status --porcelain)" || { git status --porcelain; exit 1; }
