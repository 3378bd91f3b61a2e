# The verbs of pod-pacemaker; `make help` lists them. Needs Go, gcc, git and, for the lab, root.
# Tools are Go programs, each at the version named here, built once into TOOLS.
GOLANGCI_LINT_VERSION := v2.15.0
GOTESTSUM_VERSION := v1.13.0
PROMETHEUS_VERSION := v0.315.0
GORELEASER_VERSION := v2.16.0
ACTIONLINT_VERSION := v1.7.12
GOVULNCHECK_VERSION := v1.1.4
SYFT_VERSION := v1.42.0
COSIGN_VERSION := v3.1.3
HELM_VERSION := v4.2.4

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
CACHE := $(or $(POD_PACEMAKER_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/pod-pacemaker)
TOOLS ?= $(CACHE)/tools/$(shell $(GO) env GOVERSION)
LINT := $(TOOLS)/$(GOLANGCI_LINT_VERSION)/golangci-lint
GOTESTSUM := $(TOOLS)/$(GOTESTSUM_VERSION)/gotestsum
PROMTOOL := $(TOOLS)/$(PROMETHEUS_VERSION)/promtool
GORELEASER := $(TOOLS)/$(GORELEASER_VERSION)/goreleaser
GOVULNCHECK := $(TOOLS)/$(GOVULNCHECK_VERSION)/govulncheck
ACTIONLINT := $(TOOLS)/$(ACTIONLINT_VERSION)/actionlint
SYFT := $(TOOLS)/$(SYFT_VERSION)/syft
COSIGN := $(TOOLS)/$(COSIGN_VERSION)/cosign
HELM := $(TOOLS)/$(HELM_VERSION)/helm
LAB := cd integration && $(GO) run ./cmd/lab
# E2EFLAGS stand last, so that they win.
E2E := cd integration && $(GOTESTSUM) --format testname -- -count=1 -p=1

.DEFAULT_GOAL := help
.PHONY: help build test format generated unit race lint sim shapes fuzz vulns generate alerts page api demo e2e e2e-full e2e-lab verdicts e2e-vm e2e-vm-full chaos release-manifests lab cluster-up cluster-down release-check image-check release-tools bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build the programs into bin/, static
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)' -o bin/ ./plugin/cmd/...

test: format generated unit ## Check format and generated files, then run the unit tests (no root)

format:
	@out=$$(gofmt -l .); test -z "$$out" || { echo "gofmt -w would change:"; echo "$$out"; exit 1; }

# What go generate ./crd writes. The oldest Kubernetes that the chart accepts must take these CRDs, too. They lie outside its
# module, so the cache of go test does not see that they changed.
GENERATED := crd/v1alpha1/zz_generated.deepcopy.go crd/rules/*.json deploy/crds/*_*.yaml deploy/chart/pod-pacemaker/files/crds/*_*.yaml
generated:
	@before=$$(cat $(GENERATED) | sha256sum); $(GO) generate ./crd || exit 1; test "$$before" = "$$(cat $(GENERATED) | sha256sum)" || \
		{ echo "deep copies and CRDs were not current: 'go generate ./crd' has written them, commit that"; exit 1; }
	cd integration && $(GO) run ./cmd/imports -check && $(GO) run ./cmd/scenarios -check
	cd integration/oldapi && $(GO) test -count=1 -vet=off ./...

# One run over both modules, so that the closing line counts every test.
unit: $(GOTESTSUM)
	$(GOTESTSUM) --format pkgname --raw-command -- .ci/unit $(TESTFLAGS)

race: $(GOTESTSUM) ## Run the unit tests with -race (no root)
	$(GOTESTSUM) --format pkgname --raw-command -- .ci/unit -race $(TESTFLAGS)

# With every build tag there is, so that all code compiles. govet is one of the linters.
lint: $(LINT) ## Run vet and the linters of .golangci.yaml on all modules
	$(LINT) run --allow-parallel-runners --build-tags sim ./...
	cd integration && $(LINT) run --allow-parallel-runners --build-tags e2e,full,browser,record,vm ./...
	cd integration/oldapi && $(LINT) run --allow-parallel-runners ./...

# The tests of files *_sim_test.go, which have the build tag sim.
sim: $(GOTESTSUM) ## Run the long simulations of the limiter, and of a node with fixed seeds
	$(GOTESTSUM) --format testname -- -count=1 -tags sim -timeout 30m \
		-run "^($$(grep -rhoP --include='*_sim_test.go' '^func \KTest\w+' throttle plugin | paste -sd '|'))$$" ./throttle/... ./plugin

shapes: $(GOTESTSUM) ## Run a node in a bubble, whose pods, limits and faults a seed draws: make shapes SEED=7 COUNT=20, or MINUTES=5 for fresh ones; NODE=1 for the seeds of make chaos
	GOMAXPROCS=1 SHAPES_NODE=$(NODE) SHAPES_SEED=$(SEED) SHAPES_COUNT=$(COUNT) SHAPES_MINUTES=$(MINUTES) \
	$(GOTESTSUM) --format standard-verbose -- -count=1 -tags sim -timeout 24h -run '^TestShapes$$' ./plugin

# A fuzzer that finds a fault keeps what found it in a folder testdata/fuzz, from where every test runs it.
FUZZTIME ?= 60s
fuzz: ## Run every fuzzer for FUZZTIME (60s)
	@failed=0; for file in $$(grep -rl --include='*_test.go' '^func Fuzz' crd plugin throttle); do \
		for name in $$(grep -oP '^func \KFuzz\w+' "$$file"); do \
			echo "== $$name of $$(dirname "$$file")"; \
			$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "./$$(dirname "$$file")" || failed=1; \
		done; \
	done; git ls-files --others -- '*/testdata/fuzz/*' | xargs -r tail -n +1; exit $$failed

# govulncheck exits with 3 if it finds something, and with 1 if it cannot look.
vulns: $(GOVULNCHECK) ## Look for known vulnerabilities in what the programs use; skipped where the database cannot be reached
	@out=$$($(GOVULNCHECK) ./... 2>&1) || { code=$$?; echo "$$out"; \
		case "$$out" in *"fetching vulnerabilities"*) echo "SKIPPED: the database of vulnerabilities cannot be reached"; exit 0;; esac; exit $$code; }; \
		echo "$$out"

generate: ## Write the generated files anew: deep copies, CRDs, the reference, the picture of imports, the chart and its manifests, the list of scenarios
	$(GO) generate ./...
	cd integration && $(GO) generate ./chart ./e2e

alerts: $(PROMTOOL) ## Test the Prometheus alert rules
	$(PROMTOOL) check rules --lint-fatal deploy/alerts/pod-pacemaker.yaml
	$(PROMTOOL) test rules deploy/alerts/pod-pacemaker_test.yaml

page: $(GOTESTSUM) ## Test the daemon's page in a headless Chromium, which must be on the PATH
	$(E2E) -tags browser ./page

api: lab $(GOTESTSUM) ## Ask a real API server what the CRDs accept and refuse, in seconds plus the builds (root)
	$(E2E) -tags e2e -timeout 15m ./apiserver

demo: build ## Watch a herd of pods start, unpaced and paced, on a throw-away containerd (about 3 minutes)
	cd integration && $(GO) run ./cmd/demo

e2e: build lab $(GOTESTSUM) ## Run the scenarios on one real one-node cluster, in about 28 minutes plus the builds (root)
	rm -f bin/e2e.json
	export GOTESTSUM_JSONFILE=$(abspath bin/e2e.json); $(E2E) -tags e2e -timeout 2h $(E2EFLAGS) ./e2e/...; passed=$$?; \
		$(GO) run ./cmd/verdicts -events $(abspath bin/e2e.json) -out $(abspath bin/verdicts-e2e.jsonl) && exit $$passed

# A run that was cut off goes on: what is in VERDICTS at this commit and passed is not run again.
SHARD ?= 1/1
VERDICTS ?= bin/verdicts-$(subst /,of,$(SHARD)).jsonl
SHARDED := mkdir -p bin && cd integration && $(GO) run ./cmd/verdicts -shard $(SHARD) -out $(abspath $(VERDICTS))
e2e-full: build lab ## Run every scenario, the long ones too, or a part that ends within an hour: make e2e-full SHARD=2/8 (root)
	$(SHARDED) -package ./e2e -tags e2e,full -known e2e/verdicts.jsonl $(E2EFLAGS)

e2e-lab: build lab $(GOTESTSUM) ## Run the tests of the lab itself, and all of the API server (root)
	$(E2E) -tags e2e,full -timeout 1h $(E2EFLAGS) ./cmd/... ./lab/... ./apiserver

verdicts: ## Write into the list of scenarios when they passed: make verdicts FILES="bin/verdicts-*.jsonl"
	cd integration && $(GO) run ./cmd/verdicts merge e2e/verdicts.jsonl $(abspath $(wildcard $(or $(FILES),bin/verdicts-*.jsonl))) && $(GO) run ./cmd/scenarios

e2e-vm: build lab $(GOTESTSUM) ## Run the scenarios that need a node with systemd and cgroup v2: a Debian guest in QEMU (root)
	$(E2E) -tags vm -timeout 60m $(E2EFLAGS) ./vm

e2e-vm-full: build lab ## The same, and the scenarios that boot another system: SELinux, cgroup v1 (root)
	$(SHARDED) -package ./vm -tags vm,full -timeout 100m $(E2EFLAGS)

# Each day has a thousand seeds of its own.
chaos: build lab $(GOTESTSUM) ## Run pods, limits and faults that a seed draws on a real node: make chaos SEED=7, or MINUTES=5 for fresh ones (root)
	export CHAOS_SEED=$(or $(SEED),$$(date -u +%Y%m%d)000) CHAOS_MINUTES=$(or $(MINUTES),$(if $(SEED),0,5)) && \
	$(E2E) -tags e2e -timeout $$(($(or $(MINUTES),5) + 20))m -run '^TestChaos$$' $(E2EFLAGS) ./e2e

lab:
	$(LAB) build

cluster-up: build ## Start a one-node cluster; eval "$(make -s cluster-up)" sets KUBECONFIG (root)
	$(LAB) up

cluster-down: ## Stop that cluster and remove what it left
	$(LAB) down

# What a release has beside archives and image. The chart and install.yaml name the image at IMAGE_REPOSITORY, with the
# chart's appVersion as its tag.
MANIFESTS := bin/manifests
release-manifests: $(HELM)
	rm -rf $(MANIFESTS) && mkdir -p $(MANIFESTS)/chart && cp -r deploy/chart/pod-pacemaker $(MANIFESTS)/chart/
	sed -i 's|^  repository: ""$$|  repository: $(IMAGE_REPOSITORY)|' $(MANIFESTS)/chart/pod-pacemaker/values.yaml
	$(HELM) package $(MANIFESTS)/chart/pod-pacemaker --destination $(MANIFESTS) && rm -r $(MANIFESTS)/chart
	$(HELM) template pod-pacemaker $(MANIFESTS)/pod-pacemaker-*.tgz --namespace pod-pacemaker --set namespace.create=true --no-hooks >$(MANIFESTS)/install.yaml
	cat deploy/crds/pod-pacemaker.io_*.yaml >$(MANIFESTS)/crds.yaml
	tag=$$(sed -n 's/^appVersion: //p' deploy/chart/pod-pacemaker/Chart.yaml) && grep -qx " *image: $(IMAGE_REPOSITORY):$$tag" $(MANIFESTS)/install.yaml || \
		{ echo "the chart of the release does not name its image"; exit 1; }

release-check: $(GORELEASER) $(ACTIONLINT) ## Check workflows and release files, and build what a release has for both architectures
	$(ACTIONLINT)
	IMAGE_REPOSITORY=registry.example/pod-pacemaker $(GORELEASER) check
	IMAGE_REPOSITORY=registry.example/pod-pacemaker $(GORELEASER) release --snapshot --clean --skip=docker,sbom,sign

# ENGINE=podman for that one.
ENGINE ?= docker
# An image says its version, has a hook that runs on the host, and the licences of what is linked.
define image-works
	$(ENGINE) run --rm $(1) --version | grep -F "$(VERSION)"
	id=$$($(ENGINE) create $(1)) && $(ENGINE) cp $$id:/usr/local/bin/pacemaker-gate dist/image/hook && $(ENGINE) export $$id | tar t >dist/image/files; $(ENGINE) rm $$id && dist/image/hook --version | grep -F "$(VERSION)" && grep -E '^licenses/third-party/github.com_containerd_nri@.*/LICENSE$$' dist/image/files
endef
image-check: build ## Build the image of a release from bin/, and that of the Containerfile, with docker, or ENGINE, and run both
	rm -rf dist/image && mkdir -p dist/image/linux/$$($(GO) env GOARCH)
	cp bin/pod-pacemaker bin/pacemaker-gate bin/pacemaker-cni dist/image/linux/$$($(GO) env GOARCH)/ && cp LICENSE dist/image/
	$(GO) run -C integration ./cmd/licenses -o ../dist/image/bin/licenses
	$(ENGINE) build --build-arg TARGETPLATFORM=linux/$$($(GO) env GOARCH) -f deploy/release/Containerfile -t pod-pacemaker:check dist/image
	$(call image-works,pod-pacemaker:check)
	$(ENGINE) build --build-arg VERSION="$(VERSION)" --build-arg COMMIT="$(COMMIT)" -t pod-pacemaker:check-containerfile -f Containerfile .
	$(call image-works,pod-pacemaker:check-containerfile)

release-tools: $(GORELEASER) $(SYFT) $(COSIGN) $(HELM)

bench: ## Run the benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

clean: ## Remove bin/ and dist/; the caches of tools and lab builds stay
	rm -rf bin dist

$(LINT):
	GOBIN=$(@D) CGO_ENABLED=0 $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

$(GOTESTSUM):
	GOBIN=$(@D) CGO_ENABLED=0 $(GO) install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)

$(GORELEASER):
	GOBIN=$(@D) CGO_ENABLED=0 $(GO) install github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)

$(GOVULNCHECK):
	GOBIN=$(@D) CGO_ENABLED=0 $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

$(ACTIONLINT):
	GOBIN=$(@D) CGO_ENABLED=0 $(GO) install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)

$(SYFT):
	GOBIN=$(@D) CGO_ENABLED=0 $(GO) install github.com/anchore/syft/cmd/syft@$(SYFT_VERSION)

$(COSIGN):
	GOBIN=$(@D) CGO_ENABLED=0 $(GO) install github.com/sigstore/cosign/v3/cmd/cosign@$(COSIGN_VERSION)

$(HELM):
	GOBIN=$(@D) CGO_ENABLED=0 $(GO) install helm.sh/helm/v4/cmd/helm@$(HELM_VERSION)

# Not by `go install`: its module has directives that only a main module may have. Without
# service discovery, which rules do not use, it is a fifth smaller.
$(PROMTOOL):
	rm -rf $(@D) && mkdir -p $(@D)
	cd $(@D) && $(GO) mod init promtool && $(GO) mod edit -replace cloud.google.com/go=cloud.google.com/go@v0.123.0
	cd $(@D) && $(GO) get github.com/prometheus/prometheus/cmd/promtool@$(PROMETHEUS_VERSION)
	cd $(@D) && CGO_ENABLED=0 $(GO) build -tags remove_all_sd -o promtool github.com/prometheus/prometheus/cmd/promtool
