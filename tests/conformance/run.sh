#!/usr/bin/env bash
# Runs the built plugin against the kubelet's own device manager, that of 1.37 and that of 1.34
# (doc.go says how). Arguments go to `go test`: run.sh -run TestNUMA
#
# NDP_BIN and NDP_SIM_BIN name the programs; the default is the release build's.
# Without a Go toolchain, or without the right to make mount namespaces, it says so and skips;
# with CI=true that is a failure.
set -euo pipefail
cd "$(dirname "$0")"

readonly least_go=1.26

skip() {
  if [[ "${CI:-}" == true ]]; then
    echo "conformance: cannot run: $1" >&2
    exit 1
  fi
  echo "conformance: skipped: $1"
  exit 0
}

command -v go >/dev/null || skip "there is no Go toolchain ($least_go or newer) on PATH"
version=$(go env GOVERSION)
printf '%s\n' "$least_go" "${version#go}" | sort -C -V || skip "needs Go $least_go, found $version"
for compiler in cc c++; do
  command -v "$compiler" >/dev/null || skip "NVIDIA's Go bindings and a stand-in for a library of WSL need $compiler"
done
unshare --mount --pid --fork true 2>/dev/null ||
  skip "the tests need root and the right to make mount and process namespaces"

bin=$(realpath -m ../../build/release/bin)
export NDP_BIN=${NDP_BIN:-$bin/ndp} NDP_SIM_BIN=${NDP_SIM_BIN:-$bin/ndp-sim}
for program in "$NDP_BIN" "$NDP_SIM_BIN"; do
  if [[ ! -x "$program" ]]; then
    echo "conformance: $program is not there; make build makes it" >&2
    exit 1
  fi
done

# The bindings' header marks half of NVML as deprecated.
export CGO_CFLAGS="${CGO_CFLAGS:--O2 -g} -Wno-deprecated-declarations"

output=$(mktemp)
programs=$(mktemp -d)
trap 'rm -rf "$output" "$programs"' EXIT
# The published schema is in an older module, NVIDIA's generator in one with other requirements:
# programs of their own.
go build -C cdischema -o "$programs/" .
go build -C nvcdi -ldflags='-s -w' -o "$programs/" . tool
export NDP_CDI_SCHEMA="$programs/cdischema" NDP_NVCDI="$programs/nvcdi"
export NDP_NVIDIA_CTK="$programs/nvidia-ctk"
status=0
# The tests mostly wait, so more of them run at a time than there are cores.
suite=(go test -v -count=1 -parallel=4 -timeout=20m)
echo "== device manager of kubelet 1.37"
"${suite[@]}" "$@" . 2>&1 | grep -v '^=== ' | tee -a "$output" || status=1
echo "== device manager of kubelet 1.34"
"${suite[@]}" -modfile=kubelet-1.34.mod -tags=kubelet134 "$@" . 2>&1 | grep -v '^=== ' |
  tee -a "$output" || status=1

count() { grep -c "^--- $1" "$output" || true; }
echo "conformance: $(count PASS) passed, $(count FAIL) failed, $(count SKIP) skipped"
exit "$status"
