# The two commands a newcomer needs: `make demo` and `make test`. The rest is for people who change
# the code or ship it. Each installs the Debian packages it needs (as root, by apt).

PREFIX ?= /usr
DESTDIR ?=
JOBS ?= $(shell nproc)
BIN := build/release/bin
# gRPC from Debian is not built for ThreadSanitizer: the rooms below it.
TSAN_ROOMS := base os doc metrics config nvml inventory resource cdi health plugin

.PHONY: demo test unit integration build install conformance e2e bench soak release-test tidy format lint clean deps tsan fuzz

demo: build  ## a simulated DGX: eight GPUs offered, two handed out, one lost and back
	@$(BIN)/ndp-sim run --profile dgx-h100

test: unit integration  ## every test that needs nothing but Debian's packages

unit: build/dev/build.ninja
	cmake --build --preset dev -j $(JOBS)
	ctest --test-dir build/dev -j $(JOBS) --output-on-failure --no-tests=error

integration: build/dev/build.ninja
	cmake --build --preset dev -j $(JOBS)
	tests/run-python.sh

build: build/release/build.ninja  ## release programs into build/release/bin
	cmake --build --preset release -j $(JOBS)

install: build
	cmake --install build/release --prefix $(PREFIX) --strip

conformance: build  ## the kubelet's device manager and NVIDIA's CDI generator against the built program (needs Go)
	tests/conformance/run.sh

e2e: build  ## real containers: kubelet, containerd and NVIDIA's hooks (needs Go and root)
	tests/e2e/run.sh

bench: build  ## figures and ratios, never a verdict; OTHER=<binary> adds a second column
	bench/run.sh

release-test: build  ## what is shipped: size, needs, system calls, where it is installed
	tools/install-deps.sh release
	tests/setup-venv.sh
	build/venv/bin/python -m pytest -q tests/release

soak: build  ## restarts, reloads, leaks
	tests/soak/run.sh

tsan: deps  ## ThreadSanitizer over the rooms below rpc
	cmake --preset tsan
	cmake --build --preset tsan -j $(JOBS) --target $(TSAN_ROOMS:%=%_test)
	for room in $(TSAN_ROOMS); do build/tsan/bin/$${room}_test --gtest_brief=1 || exit 1; done

fuzz: deps
	tools/install-deps.sh fuzz
	fuzz/run.sh

format:
	tools/install-deps.sh lint
	git ls-files '*.h' '*.cc' | xargs clang-format-19 -i

lint: tidy
	tools/install-deps.sh lint
	git ls-files '*.h' '*.cc' | xargs clang-format-19 --dry-run -Werror

tidy:  ## clang-tidy over what changed since BASE (.ci/tidy-base; BASE=all for the whole tree)
	tools/install-deps.sh lint
	tools/tidy.sh $(BASE)

deps:
	@tools/install-deps.sh

build/%/build.ninja: deps
	@test -f $@ || cmake --preset $*

clean:
	rm -rf build
