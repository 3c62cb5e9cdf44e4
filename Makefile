# The door to limitd. What the tests need besides Go is in .ci/run.

GO          ?= go
FUZZTIME    ?= 1s
FUZZWIRE    ?= 12s
CHURN       ?= 3m
SOAK        ?= 2h
SOAKDIR     ?= soak
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# The packages with crash points, which only the tag compiles in.
FAILPOINTS = $$(grep -rl --include='*.go' '^//go:build failpoint' . | xargs -n1 dirname | sort -u)

.PHONY: run build test ci lint fuzz failpoint nextformat bolt mutants e2e churn sim jepsen selftest soak bench-smoke bench-peers bench profile clients clients-ci

# Three nodes on this machine, until Ctrl-C.
run: build
	./bin/limitd local

build:
	$(GO) build -o bin/limitd ./cmd/limitd

# Everything, with the race detector (what judges histories also without it, where it judges
# more of them); the tests of the built binary in their short form.
# -count=1: what the binary is built from is no input that the test cache knows.
test:
	$(GO) test -race -parallel 4 $$($(GO) list ./... | grep -v '/e2e$$')
	$(GO) test ./jepsen/check/...
	$(GO) test -race -short -count=1 -timeout 10m -parallel 4 ./e2e

# What is too long for `make test`.
ci: lint failpoint nextformat bolt mutants fuzz jepsen e2e clients-ci
	$(MAKE) churn CHURN=1m

lint:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt these files:"; echo "$$unformatted"; exit 1; }
	$(GO) mod tidy -diff
	$(GO) vet ./...
	$(GO) vet -tags failpoint $(FAILPOINTS)
	$(GO) vet -tags nextformat ./...
	$(GO) vet -tags mutant ./...
	$(GO) -C clients/go mod tidy -diff
	$(GO) -C clients/go vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) run $(STATICCHECK) -tags failpoint $(FAILPOINTS)
	cd clients/go && $(GO) run $(STATICCHECK) ./...
	GO=$(GO) .ci/vulncheck $(GOVULNCHECK)

# A crash at each step that writes, in the packages that have such steps.
failpoint:
	$(GO) test -tags failpoint -run 'Crash|Failpoint' $(FAILPOINTS)

# The tests of a node with the other log store, bolt.
bolt:
	LIMITD_TEST_LOG_STORE=bolt $(GO) test ./cluster

# The build whose formats are those that the next release might have.
nextformat:
	$(GO) test -tags nextformat ./fsm ./snapshot
	$(GO) test -tags nextformat -run 'Version|Newer|Read|Upgrade|SavedSnap' ./cluster

# Each known defect changes what it should, and the simulation finds those that show there.
mutants:
	$(GO) test -tags mutant -run 'Defect|Misspelled' $$(grep -rl --include='*_test.go' '^//go:build mutant' . | xargs -n1 dirname | sort -u)

# Each fuzz target for FUZZTIME, those of the wire for FUZZWIRE.
fuzz:
	GO=$(GO) .ci/fuzz $(FUZZTIME) $(FUZZWIRE)

# The tests of the built binary that have a short form, in their long one.
e2e:
	$(GO) test -count=1 -timeout 10m -parallel 4 -v -run "$$(.ci/longtests e2e)" -skip '^TestChurn$$' ./e2e

# All membership operations in random order, with nodes killed meanwhile, for CHURN. It prints the seed that does it again.
churn:
	$(GO) test -count=1 -timeout 30m -v -run '^TestChurn$$' ./e2e -churn=$(CHURN)

# Whole clusters in virtual time: more than 200 minutes of it in about one, for seeds from SEED on.
SEED ?= 1
sim:
	$(GO) test -count=1 -tags failpoint ./jepsen/sim -run TestSeeds -seeds 41 -seed $(SEED) -minutes 5 -workers 2

# Real processes in namespaces of their own, broken in every way and judged: about two
# minutes. As root, with nftables and iproute2.
jepsen: sim
	$(GO) run ./jepsen/cmd/jepsen ci

# Each known-bad build must be reported by the check that is for it: about nine minutes.
selftest:
	$(GO) run ./jepsen/cmd/jepsen selftest

# Run after run for SOAK, with the ledger and the failing runs in SOAKDIR; it goes on after the last seed there.
soak:
	$(GO) run ./jepsen/cmd/jepsen soak -time $(SOAK) -dir $(SOAKDIR)
	$(GO) run ./jepsen/cmd/jepsen soak -summary -dir $(SOAKDIR)

# The rows of bench/README.md, against redis-server on this machine.
bench-smoke:
	$(GO) run ./bench/run

# The modules of the servers that limitd is compared with: minutes, the first time, and so
# not a part of make lint.
bench-peers:
	$(GO) -C bench/peers mod tidy -diff
	$(GO) -C bench/peers/gubernator mod tidy -diff
	$(GO) -C bench/peers/ratelimit mod tidy -diff
	$(GO) -C bench/peers vet ./...
	cd bench/peers && $(GO) run $(STATICCHECK) ./...
	$(GO) -C bench/peers test ./...

# All rows, into bench/RESULTS.md and plots beside it: about twenty minutes, on an otherwise idle machine. The loads are a quarter as
# long as those of single rows, where that is enough; BENCHSCALE=1 for all of their length.
BENCHSCALE ?= 0.25
bench: bench-peers
	$(GO) run ./bench/run -rows all -scale $(BENCHSCALE) -kills 5 -results bench/RESULTS.md

# Profiles of the nodes under each workload, into PROFILES, and the top of each.
PROFILES ?= profiles
profile:
	$(GO) run ./bench/run -profiles $(PROFILES)

# Real Redis clients against three nodes that are broken under them, and the table
# of docs/clients.md. clients/README.md lists what must be installed.
clients:
	$(GO) run ./clients -write docs/clients.md

# The same with one kill of the leader, and no table.
clients-ci:
	$(GO) run ./clients -kills 1 -limit 60
