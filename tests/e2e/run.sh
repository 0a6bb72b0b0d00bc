#!/usr/bin/env bash
# Real containers on a simulated node: the kubelet, containerd 2 and NVIDIA's hook program, all
# built from source, with the built plugin. Arguments go to pytest: run.sh -k mig
#
# NDP_BIN_DIR names the programs under test; the default is the release build's.
# Without a Go toolchain, or without the rights it takes, it says so and skips; with CI=true that
# is a failure. The host stays as it is: own mounts, process ids, network and control groups.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly least_go=1.26 programs=build/e2e/bin

skip() {
  if [[ "${CI:-}" == true ]]; then
    echo "e2e: cannot run: $1" >&2
    exit 1
  fi
  echo "e2e: skipped: $1"
  exit 0
}

[[ $(id -u) -eq 0 ]] || skip "running containers needs root"
command -v go >/dev/null || skip "there is no Go toolchain ($least_go or newer) on PATH"
version=$(go env GOVERSION)
printf '%s\n' "$least_go" "${version#go}" | sort -C -V || skip "needs Go $least_go, found $version"
unshare --mount --pid --net --uts --ipc --fork true 2>/dev/null ||
  skip "it needs the right to make namespaces"
tools/install-deps.sh e2e

export NDP_BIN_DIR="${NDP_BIN_DIR:-$PWD/build/release/bin}"
for program in ndp ndp-sim; do
  if [[ ! -x "$NDP_BIN_DIR/$program" ]]; then
    echo "e2e: $NDP_BIN_DIR/$program is not there; make build makes it" >&2
    exit 1
  fi
done

# The same flags as for tests/conformance, so that what both need is compiled once.
export CGO_CFLAGS="${CGO_CFLAGS:--O2 -g} -Wno-deprecated-declarations"
mkdir -p "$programs"
for module in tests/e2e/modules/*/; do
  started=$SECONDS
  nice go build -C "$module" -ldflags='-s -w' -o "$PWD/$programs/" tool
  echo "e2e: built $(basename "$module") in $((SECONDS - started)) s"
done
tests/setup-venv.sh

# What a run left that was killed outright: its process id is in the names.
for folder in /tmp/ndp-e2e.*; do
  owner=$(cut -d. -f2 <<<"$folder")
  if [[ -d "$folder" && ! -d "/proc/$owner" ]]; then
    tests/e2e/cgroup.sh remove "/${folder##*/}"
    rmdir "$folder" || true
  fi
done

NDP_E2E_DIR=$(mktemp -d "/tmp/ndp-e2e.$$.XXXXXX")
export NDP_E2E_DIR NDP_E2E_CGROUP="/${NDP_E2E_DIR##*/}"
tests=
clean_up() {
  trap - EXIT
  # Its whole process namespace ends with it.
  [[ -z "$tests" ]] || kill -KILL "$tests" 2>/dev/null || true
  tests/e2e/cgroup.sh remove "$NDP_E2E_CGROUP"
  rmdir "$NDP_E2E_DIR"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
tests/e2e/cgroup.sh make "$NDP_E2E_CGROUP"
# In the background, for bash runs traps only when no child is waited for in the foreground.
setpriv --pdeathsig KILL unshare --mount --pid --net --uts --ipc --fork --kill-child --mount-proc \
  tests/e2e/inside.sh "$@" &
tests=$!
status=0
wait "$tests" || status=$?
tests=
exit "$status"
