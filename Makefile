# make help lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
BIN := bin/cmsjobs
VERSION ?= $(shell git describe --tags --match 'v*' --always --dirty 2>/dev/null || echo dev)
# Those whose tests take longest come first: one that begins last is waited for alone.
PACKAGES ?= ./internal/web ./internal/handlers/backup ./internal/jobs/queue ./internal/jobs . ./internal/cli ./...
# Modules of their own: the product's go.mod does not answer for what only these
# need, and who imports the client gets nothing of the product's.
MODULES := client checks bench docs/screenshots
FUZZTIME ?= 20s

.PHONY: help build run demo compile test tests-of-packages tests-of-modules mysql grammar corpus matrix lint bench bench-programs bench-queue bench-fleet bench-go bench-mail bench-feed bench-repository bench-php arm golden fuzz mutants structure verify check soak heavy vuln licences deploy-check compose-check setup-check pin-images packages-check release-check platforms typecheck cluster upgrade lighthouse screencast screenshots clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

build: ## build bin/cmsjobs, one static binary
	CGO_ENABLED=0 go build -tags nodynamic -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN) ./cmd/cmsjobs

run: build ## run worker, scheduler and web on the site in CMS=/var/www/site
	$(BIN) $(if $(CMS),--cms $(CMS)) run

demo: ## show everything on a sample site
	go run ./cmd/cmsjobs demo

# The JavaScript client's tests need its compiler; without npm they are skipped,
# unless CI=true.
sdk/js/node_modules: sdk/js/package-lock.json
	@if command -v npm >/dev/null; then cd sdk/js && npm ci --no-audit --no-fund --silent; fi

# SQLite is C that was translated to Go. Its memory is none that the race detector
# watches, but with the detector's calls in it every statement takes four times as long.
# The loops of compression over bytes share nothing but through channels. What joins SQLite
# to Go is spared the check of pointers. Both are a fifth of what the backup's tests take.
# No other package is left out: one that has copies of the library's generic code, as of
# sync.Map's, would hide from the detector who waits for whom.
RACE := -race -gcflags='modernc.org/sqlite/lib=-race=false' -gcflags='github.com/klauspost/compress/...=-race=false' \
	-gcflags='modernc.org/libc/...=-d=checkptr=0' -gcflags='modernc.org/sqlite=-d=checkptr=0'

# Five tests at once in a package, as tests often wait for a server. With CI=true, where a
# loaded machine may be late for a test that counts seconds, a test that fails runs once more,
# by itself, when all have ended: its first failure is printed, and it is named at the end.
# A data race, a panic and more than five failures stand. Vet has seen all of it before.
FLAGS := $(RACE) -vet=off -shuffle=on -timeout 75m -p $$(($$(nproc) + 1)) -parallel 5
ONCE_MORE := go run gotest.tools/gotestsum@v1.13.0 --format standard-quiet --rerun-fails=1 --rerun-fails-max-failures=5 --rerun-fails-abort-on-data-race --ignore-non-json-output-lines
TESTS = $(if $(filter true,$(CI)),$(ONCE_MORE) --packages="$(PACKAGES)" -- $(FLAGS),go test $(FLAGS) $(PACKAGES))

compile: ## vet, and compile what the tests are linked from
	go vet $(PACKAGES)
	go build $(RACE) $(PACKAGES)

test: sdk/js/node_modules ## vet and every test, with the race detector (starts its own MariaDB, MySQL, PostgreSQL, Redis)
	go vet $(PACKAGES)
	@$(MAKE) --no-print-directory -j2 tests-of-packages tests-of-modules

tests-of-packages:
	$(TESTS)

# Beside those of the packages, of which the longest are waited for at the end.
tests-of-modules:
	@set -e; for m in $(MODULES); do echo "go test -C $$m"; go vet -C $$m ./...; nice go test -C $$m $(RACE) -vet=off -shuffle=on -timeout 60m ./...; done

mysql: ## install a real MySQL for the tests into the cache folder, without the system's package list
	internal/jobs/jobstest/mysql.sh

grammar: ## does a parser of MySQL 5.7 and 8.0 read every statement that we send?
	cd deploy/grammar && go vet ./... && go test ./...

# The packages that speak to the CMS's database.
# make corpus CORPUS=./internal/feed/... KEEP=-keep adds those of some packages only.
CORPUS := ./internal/jobs/... ./internal/feed/... ./internal/cms ./internal/handlers/... ./internal/web/access ./internal/cli ./cmd/...
corpus: ## record deploy/grammar/corpus.txt again: the tests' statements on MySQL (15 min)
	@set -euo pipefail; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
		CMSJOBS_TEST_MYSQL_LOGS=$$dir go test -count=1 -run '/mysql|MySQL' $(CORPUS); cd deploy/grammar && go run . $(KEEP) -record $$dir

matrix: ## as root: the tests on a server of another version, without a container engine: SERVER=mysql-5.7 OPTIONS=… (internal/jobs/jobstest/versions.sh lists them)
	internal/jobs/jobstest/matrix.sh $(SERVER) $(OPTIONS)

lint: ## golangci-lint, by .golangci.yml
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.8.0 run $(PACKAGES)
	@set -e; for m in $(MODULES); do (cd $$m && go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.8.0 run ./...); done

bench-programs:
	CGO_ENABLED=0 go build -C bench -tags nodynamic -o ../bin/bench/ ./queue ./beside ./scale ./soak \
		./mutants ./mail ./feed ./repository ./fleet ./php

# A run that writes a page waits until the machine is quiet, and gives up after ten minutes.
bench: bench-programs ## beside the peers that are installed, in one run, into docs/benchmarks.md (half an hour)
	bin/bench/queue -page docs/benchmarks.md
	bin/bench/beside -page docs/benchmarks.md
	bin/bench/scale -page docs/scaling.md
	$(MAKE) bench-mail bench-repository

bench-queue: bench-programs ## only the queue beside Laravel, River and graphile-worker (15 min; SHORT=1 tries it in 3 and writes no page)
	bin/bench/queue $(if $(SHORT),-short -jobs 4000,-page docs/benchmarks.md)

bench-fleet: bench-programs ## 1 to 64 worker processes beside Laravel's, River's and graphile-worker's, and a bare loop, in docs/benchmarks.md (an hour; SHORT=1 tries it in 2 minutes and writes no page)
	bin/bench/fleet $(if $(SHORT),-short,-page docs/benchmarks.md)

bench-mail: build bench-programs ## mails a second beside plain loops, in docs/benchmarks.md (1 min)
	bin/bench/mail -page docs/benchmarks.md

bench-feed: bench-programs ## from another program's INSERT to the handler, by every way to notice it, in docs/benchmarks.md (5 min)
	bin/bench/feed -page docs/benchmarks.md

bench-repository: bench-programs ## the repository of backups beside tar with zstd, and restic, in docs/benchmarks.md (2 min, 8 GB of disk; SHORT=1 tries it with less and writes no page)
	bin/bench/repository $(if $(SHORT),-files 3000 -bytes 300000000,-page docs/benchmarks.md)

bench-php: build bench-programs ## PHP's own jobs beside queue:work, in docs/benchmarks.md (5 min; SHORT=1 tries it in half a minute and writes no page)
	bin/bench/php $(if $(SHORT),-short,-page docs/benchmarks.md)

BENCHTIME ?= 1s
bench-go: ## the benchmarks of all packages, and cmsjobs bench (BENCHTIME=1x: each once)
	go test -run '^$$' -bench . -benchtime $(BENCHTIME) $(PACKAGES)
	go run ./cmd/cmsjobs bench

arm: ## the picture kernels of arm64 (NEON), by qemu-user-static where this is no arm64
	GOARCH=arm64 go test $(if $(filter-out aarch64,$(shell uname -m)),-exec qemu-aarch64-static) ./internal/handlers/media/resample

# The tests that compare with files which they can write themselves; a test holds that none is missing here.
GOLDEN := Documented$$|TestHelp$$|TestPagesLookAsTheyDid|TestTheDocumentIsThatOfTheRoutes|TestTheTableOfRights|TestEveryOptionInOneMap|TestLLMs$$|TestVideos$$|TestEachChannelGetsItsFormat|TestNobodyIsMailedWhereNobodyIsNamed|TestEachTemplateWithItsExample|TestReportsAreAsTheyWere|TestWhatIsReadOfLaravelsPayloads|TestTheLaravelHereWritesThesePayloads|TestTheFramesLookAsTheyDid|TestSetupOnOtherDatabases
golden: ## write the golden files; look at the diff
	go test -count=1 $$(git grep -l --name-only 'internal/testgolden"' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|') -run '$(GOLDEN)' -update
	git diff --stat

fuzz: ## fuzz what reads foreign bytes, FUZZTIME each
	@set -euo pipefail; for p in $$(go list ./...); do \
		for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz' || true); do echo "$$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p; done; done

mutants: bench-programs ## take out each guard of a promise and see its test fail, into docs/reliability.md (half an hour on a quiet machine; ONLY=P5 tries some)
	bin/bench/mutants -page docs/reliability.md $(if $(ONLY),-only "$(ONLY)")

structure: ## print the figures of the code's structure: sizes, complexity, arrows between files
	cd bench && go run ./structure -dir ..

verify: ## the demo as a test: every job once, its outcome in the exit code
	@set -euo pipefail; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; go run ./cmd/cmsjobs demo --once --dir "$$dir/site"; \
		go run ./cmd/cmsjobs --cms "$$dir/site" doctor

check: ## what CI does: formatting, module, tests, demo, linters
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go mod verify
	$(MAKE) test verify lint

soak: bench-programs ## an hour (CMSJOBS_SOAK_TIME) of all kinds while workers, servers, network, disks and clocks fail, into docs/reliability.md
	bin/bench/soak -time $${CMSJOBS_SOAK_TIME:-1h} -page docs/reliability.md

heavy: ## every fault test at its full size
	CMSJOBS_SOAK=1 go test $(RACE) -timeout 4h $(PACKAGES)

deploy-check: ## the files of deploy/, docker-compose.yml, workflows and releases, as their readers read them
	go test -C deploy/check ./... && go run -C deploy/check .
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.7
	go run github.com/goreleaser/goreleaser/v2@v2.12.7 check
	@if command -v systemd-analyze >/dev/null; then unit=$$(mktemp -d)/cmsjobs.service; sed 's|/usr/local/bin/cmsjobs|/bin/true|' deploy/cmsjobs.service >$$unit; \
		systemd-analyze verify --man=no $$unit && systemd-analyze security --offline=true --threshold=20 deploy/cmsjobs.service | tail -1; fi

compose-check: ## docker-compose.yml carried out: built, used in a browser, stopped, upgraded, taken down; by Docker, or by podman with stand-ins (root)
	deploy/check/compose.sh

setup-check: ## cmsjobs setup with the real systemd, supervisord and cron, in a container over this host's own root (root, podman)
	deploy/check/setup.sh

pin-images: ## pin the images of deploy/Dockerfile and docker-compose.yml by what their tags are now (needs crane, skopeo or docker)
	deploy/pin-images.sh

packages-check: ## the .deb, .rpm and .apk without goreleaser: what is in them; the .deb is installed and removed; the recipes for Homebrew and Scoop (needs dpkg, ruby, jq, zip, unzip)
	deploy/check/packages.sh

release-check: packages-check ## a release of this commit without publishing it, twice: what is in it, and whether it is the same (needs syft, jq, ruby, unzip)
	go run github.com/goreleaser/goreleaser/v2@v2.12.7 release --snapshot --clean && rm -rf bin/first && mkdir -p bin && mv dist bin/first
	go run github.com/goreleaser/goreleaser/v2@v2.12.7 release --snapshot --clean
	deploy/release-recipes.sh dist "$$(jq -r .version dist/metadata.json)" && deploy/check/release.sh dist bin/first

# What only a Unix has is in files with a build tag. bench, which drives servers of Linux, is left out.
VETTED := windows
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
platforms: ## build for every system that a release is made for, and for Windows, where people develop; vet all modules as there (VETTED="windows darwin")
	@set -e; for p in $(PLATFORMS); do echo $$p; \
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go build -tags nodynamic -o /dev/null ./cmd/cmsjobs; done
	GOOS=windows CGO_ENABLED=0 go build -tags nodynamic ./...
	@set -e; for os in $(VETTED); do for m in . $(filter-out bench,$(MODULES)) deploy/check deploy/grammar; do echo "go vet $$os $$m"; \
		GOOS=$$os CGO_ENABLED=0 go vet -C $$m -tags nodynamic ./...; done; done

typecheck: ## the types of all packages and tests as Windows has them, from source: a fifth of a minute where platforms takes minutes
	cd bench && go run ./typecheck -os windows

vuln: ## known holes in what we use (asks vuln.go.dev)
	go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 $(PACKAGES)
	@set -e; for m in $(MODULES); do (cd $$m && go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./...); done

licences: ## every module of the binary has a licence that we may ship
	go test -count=1 -run '^TestLicences$$' -v .

cluster: ## the queue on three nodes of Galera, killed, stopped and (as root) cut off by network namespaces
	CMSJOBS_CLUSTER=1 go test -count=1 -run 'Cluster|CutOffHost' -v ./internal/jobs ./internal/feed

upgrade: ## the upgrade of docs/operating.md under load, from the revision FROM (default: the newest tag)
	CMSJOBS_UPGRADE_FROM=$${FROM:-$$(git describe --tags --match 'v*' --abbrev=0)} go test -count=1 -run '^TestUpgradeUnderLoad$$' -v .

docs/screenshots/lighthouse/node_modules: docs/screenshots/lighthouse/package-lock.json
	cd docs/screenshots/lighthouse && npm ci --no-audit --no-fund --silent

lighthouse: docs/screenshots/lighthouse/node_modules ## measure pages of the demo by Lighthouse; fails below 95 (a quiet machine, 4 min; needs node 22 and chromium; SCREEN=both also as a phone)
	go build -C docs/screenshots -o ../../bin/lighthouse ./lighthouse && bin/lighthouse $(if $(SCREEN),-screen $(SCREEN))

screencast: ## docs/images/screencast.webp, half a minute through the demo (needs chromium and ImageMagick)
	go build -C docs/screenshots -o ../../bin/screencast ./screencast && bin/screencast

screenshots: ## docs/images from the demo, by chromium
	go build -C docs/screenshots -o ../../bin/screenshots . && bin/screenshots

clean: ## remove what was built and the demo
	rm -rf bin dist release cmsjobs-demo
