# sluice: `make help` lists the targets. Each sets up what it needs.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO        ?= go
FUZZTIME  ?= 10s
BENCH     ?= .
BENCHTIME ?= 1s
# An older Go fetches the one go.mod asks for, also where a distribution has turned that off.
export GOTOOLCHAIN ?= auto
# The packages with goroutines of their own; the core has none (see internal/archtest).
RACE_DIRS := dataplane internal/api/server internal/api/dashboard internal/host internal/runtime \
  internal/measure/loadgen internal/measure/telemetry

# The packages whose tests take longest begin first, so that none of them runs alone at the end.
LONGEST := ./test ./sim ./papers/... ./internal/cli ./dataplane

# Prints a package as its tests end, failures whole, and these again at the end. Tests of three packages run at once on
# two cores, since many wait. What go test would vet has been vetted.
GOTESTSUM_VERSION := v1.13.0
GOTESTSUM := .tools/gotestsum-$(GOTESTSUM_VERSION)
RUN_TESTS = $(GOTESTSUM) --format pkgname-and-test-fails --format-hide-empty-pkg --format-icons text --hide-summary skipped -- \
  -vet=off -timeout 30m -p $$(( $$(getconf _NPROCESSORS_ONLN) * 3 / 2 )) -parallel $$(( $$(getconf _NPROCESSORS_ONLN) * 2 ))

# The linter is built from the module proxy, once, into a folder that git ignores.
GOLANGCI_VERSION := v2.15.0
GOLANGCI := .tools/golangci-lint-$(GOLANGCI_VERSION)

# Checks workflows; built like the linter.
ACTIONLINT_VERSION := v1.7.12

# Makes resource definitions and deep copies; it is run, not depended on.
CONTROLLER_GEN_VERSION := v0.21.0

# say prints a step's name before its commands, so that a long run shows where it is.
say = @printf '\n==> %s\n' '$(1)'

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: tools web ## build bin/sluice
	@mkdir -p bin
	$(GO) build -o bin/sluice ./cmd/sluice

.PHONY: web
web: ## build the dashboard's page (npm) where its sources have changed; the built page is committed
	@scripts/web.sh

.PHONY: site
site: ## build the documentation as static pages with search into out/site (npm)
	@scripts/site.sh

.PHONY: setup
setup: ## fetch and verify ONNX Runtime and HiGHS (npm, once)
	@scripts/setup.sh

.PHONY: kube-tools
kube-tools: tools ## build the control plane of Kubernetes that the operator's tests run on (once, ten minutes)
	@scripts/kube-tools.sh

.PHONY: kube-test
kube-test: tools setup ## vet and test the operator on a real control plane of Kubernetes (as root)
	$(call say,the operator on a control plane)
	@scripts/kube-test.sh

.PHONY: kube-scale
kube-scale: tools setup ## measure sluice on a cluster of 2,000 simulated machines and print the table (as root, ten minutes)
	$(call say,2000 simulated machines)
	cd operator && KUBEBUILDER_ASSETS=$$(../scripts/kube-tools.sh) SLUICE_CLUSTER=must SLUICE_LONG=1 CGO_ENABLED=0 \
	  GOFLAGS=-buildvcs=false $(GO) test -count=1 -timeout 1h -run TestScale -v ./internal/scale

.PHONY: kube-faults
kube-faults: tools setup ## have things go wrong in a cluster under 1,000 queries/s and print the table (as root, fifteen minutes)
	$(call say,faults under load)
	cd operator && KUBEBUILDER_ASSETS=$$(../scripts/kube-tools.sh) SLUICE_CLUSTER=must SLUICE_LONG=1 CGO_ENABLED=0 \
	  GOFLAGS=-buildvcs=false $(GO) test -count=1 -timeout 1h -run 'TestFaults$$' -v ./e2e

.PHONY: kube-scenarios
kube-scenarios: tools setup ## have plans change in a cluster under load: demand, budget, machines, apps, fleets, a function (as root, ten minutes)
	$(call say,plans that change)
	cd operator && KUBEBUILDER_ASSETS=$$(../scripts/kube-tools.sh) SLUICE_CLUSTER=must SLUICE_LONG=1 CGO_ENABLED=0 \
	  GOFLAGS=-buildvcs=false $(GO) test -count=1 -timeout 1h -run 'TestScenarios|TestFunctionOnAFleet' -v ./e2e

.PHONY: kube-cost
kube-cost: tools setup ## serve a day of a trace in minutes on rented machines in a cluster, beside the simulator (as root, ten minutes)
	$(call say,a day on rented machines)
	cd operator && KUBEBUILDER_ASSETS=$$(../scripts/kube-tools.sh) SLUICE_CLUSTER=must SLUICE_LONG=1 CGO_ENABLED=0 \
	  GOFLAGS=-buildvcs=false $(GO) test -count=1 -timeout 1h -run 'TestDay$$' -v ./e2e

.PHONY: kube-lint
kube-lint: tools $(GOLANGCI) ## run the linters on the operator, and check its go.mod
	$(call say,linters of the operator)
	cd operator && CGO_ENABLED=0 GOFLAGS=-buildvcs=false $(CURDIR)/$(GOLANGCI) run ./... && $(GO) mod tidy -diff
	cd operator/deploy && CGO_ENABLED=0 GOFLAGS=-buildvcs=false $(CURDIR)/$(GOLANGCI) run ./... && $(GO) mod tidy -diff

.PHONY: cluster-demo
cluster-demo: tools setup ## from an empty Kubernetes cluster on this machine to an answered query, in three commands (as root)
	@scripts/cluster-demo.sh

.PHONY: crds
crds: tools ## make the definitions of sluice's Kubernetes resources from their Go types
	cd operator && $(GO) run sigs.k8s.io/controller-tools/cmd/controller-gen@$(CONTROLLER_GEN_VERSION) \
	  object crd:maxDescLen=2000 paths=./internal/api/... output:crd:dir=config/crd
	cp operator/config/crd/sluice.dev_*.yaml operator/deploy/chart/crds/

.PHONY: image
image: tools setup ## build the container image into out/image, without a daemon or a registry
	$(call say,image)
	@scripts/image.sh

.PHONY: release
release: tools ## make the files of VERSION into out/release: archives, packages, images, chart; and try the archive
	$(call say,release)
	@scripts/release.sh "$(VERSION)"
	$(call say,the archive in an empty root)
	SLUICE_RELEASE=$(CURDIR)/out/release $(GO) test -count=1 -run TestInstalled ./test

.PHONY: demo
demo: ## serve three apps under a load that rises, and compare with the simulator (two minutes the first time)
	@echo 'building the program and fetching ONNX Runtime (a minute the first time), then a minute of demonstration'
	@$(MAKE) --no-print-directory -j 2 build setup
	@bin/sluice demo

.PHONY: test
test: tools setup vet fmt $(GOTESTSUM) ## vet, check formatting, run all tests, in six minutes on two cores
	$(call say,test)
	$(RUN_TESTS) $(LONGEST) ./...

.PHONY: long
long: tools setup $(GOTESTSUM) ## run the tests in their long form: more seeds, worlds and simulated time (an hour)
	$(call say,long forms of the tests)
	SLUICE_LONG=1 $(RUN_TESTS) -timeout 3h $(LONGEST) ./...

.PHONY: race
race: tools setup $(GOTESTSUM) ## run the tests of the packages with goroutines under the race detector
	$(call say,race)
	$(RUN_TESTS) -race -short $(patsubst %,./%/...,$(wildcard $(RACE_DIRS)))

.PHONY: hostile
hostile: tools setup ## run the tests that attack a server as strangers do, and print a table (five minutes)
	$(call say,attacks)
	$(GO) run ./internal/hostile

.PHONY: fuzz
fuzz: tools ## run every fuzz target for FUZZTIME (default 10s)
	$(call say,fuzz)
	@FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

.PHONY: lint
lint: vet fmt golangci floors platforms workflows tidy ## vet, formatting, linters, import floors, workflows, go.mod tidy

.PHONY: platforms
platforms: tools
	$(call say,macOS without C builds)
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) build ./...

.PHONY: floors tidy
floors: tools
	$(call say,import floors)
	$(GO) test -count=1 ./internal/archtest

tidy: tools
	$(call say,go.mod and go.sum)
	$(GO) mod tidy -diff

.PHONY: golangci
golangci: tools $(GOLANGCI) ## run the linters of .golangci.yml
	$(call say,golangci-lint)
	$(GOLANGCI) run ./...

.PHONY: workflows
workflows: tools .tools/actionlint-$(ACTIONLINT_VERSION) ## check the workflows of .github
	$(call say,actionlint)
	.tools/actionlint-$(ACTIONLINT_VERSION)

.PHONY: onnx-suite
onnx-suite: tools setup ## serve the ONNX standard's backend cases (Debian's libonnx-testdata) and compare the answers
	$(call say,backend cases of the ONNX standard)
	@scripts/onnx-suite.sh

.PHONY: clients
clients: tools setup ## run Triton's published example clients (TRITON_CLIENT, TRITON_COMMON, TRITON_SERVER name checkouts)
	$(call say,clients in Go and JavaScript)
	@scripts/clients-grpc.sh
	$(call say,clients in Python)
	@scripts/clients.sh

.PHONY: judge
judge: tools setup ## have clients of other makers call a server: gRPC and HTTP for Python (Debian) and for Node (npm)
	$(call say,clients of other makers)
	@scripts/client-packages.sh
	SLUICE_CLIENTS=must $(GO) test -count=1 ./test -run TestClientsOfOtherMakers

# What the program is made of. Tools are built like the linter.
GOVULNCHECK_VERSION := v1.9.0
GOLICENSES_VERSION := v1.6.0

.PHONY: supply
supply: vulncheck licences sbom reproducible ## check dependencies and licences, list both, build twice and compare

.PHONY: vulncheck
vulncheck: tools .tools/govulncheck-$(GOVULNCHECK_VERSION) ## look for known vulnerabilities in what is called
	$(call say,vulnerabilities)
	scripts/supply.sh vulnerabilities $(GOVULNCHECK_VERSION)

.PHONY: licences
licences: tools .tools/go-licenses-$(GOLICENSES_VERSION) ## check the licences of the dependencies
	$(call say,licences)
	scripts/supply.sh licences $(GOLICENSES_VERSION)

.PHONY: sbom
sbom: build ## write what bin/sluice is made of to out/sbom.json (CycloneDX)
	@mkdir -p out
	$(GO) run ./internal/sbom bin/sluice package-lock.json > out/sbom.json

.PHONY: reproducible
reproducible: tools ## build the program twice, in two places, and compare the bytes
	$(call say,two builds)
	scripts/supply.sh reproducible

# A tool is built from the module proxy, once for each version: its name, its version, its package.
define built
.tools/$(1)-$(2):
	$$(call say,building $(1) $(2))
	GOBIN=$$(CURDIR)/.tools GOFLAGS=-mod=mod $$(GO) install $(3)@$(2)
	mv .tools/$(1) $$@

endef
$(eval $(call built,golangci-lint,$(GOLANGCI_VERSION),github.com/golangci/golangci-lint/v2/cmd/golangci-lint))
$(eval $(call built,gotestsum,$(GOTESTSUM_VERSION),gotest.tools/gotestsum))
$(eval $(call built,actionlint,$(ACTIONLINT_VERSION),github.com/rhysd/actionlint/cmd/actionlint))
$(eval $(call built,govulncheck,$(GOVULNCHECK_VERSION),golang.org/x/vuln/cmd/govulncheck))
$(eval $(call built,go-licenses,$(GOLICENSES_VERSION),github.com/google/go-licenses))

.PHONY: guard
guard: tools ## compare what the program does with what scripts/guard recorded (FULL=1 for every figure)
	scripts/guard.sh $(if $(FULL),--full)

.PHONY: bench
bench: tools setup ## benchmarks in Go's format (BENCH=regexp, BENCHTIME=1s)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...

.PHONY: check
check: ## all that CI runs: lint, test, race, two seconds of each fuzz target
	@$(MAKE) --no-print-directory lint vulncheck licences test race fuzz FUZZTIME=2s
	$(call say,check passed)

.PHONY: upgrade-highs
upgrade-highs: ## take the newest HiGHS from its npm package, resolve its names anew and test it
	npm install --ignore-scripts --save-exact highs@latest
	$(GO) generate ./internal/runtime/highs
	$(GO) test ./internal/runtime/highs

.PHONY: generate
generate: tools ## regenerate what is generated (go generate)
	$(GO) generate ./...

.PHONY: clean
clean: ## remove what was built and measured; fetched libraries stay
	rm -rf bin out .cache

.PHONY: distclean
distclean: clean ## remove the fetched libraries and tools as well
	rm -rf node_modules web/node_modules web/site/node_modules test/clients/node/node_modules .tools

.PHONY: tools vet fmt
tools:
	@scripts/need.sh go gcc

vet: tools
	$(call say,vet)
	$(GO) vet ./...

fmt: tools
	$(call say,gofmt)
	@scripts/gofmt.sh
