#!/usr/bin/env bash
# Measures the built plugin, and with OTHER=<program> another device plugin beside it, on a
# simulated node. Prints a table and never fails on a number. Arguments go to the program: run.sh
# -only calls; run.sh -list names the parts.
set -euo pipefail
other=${OTHER:+$(realpath -m "$OTHER")}
cd "$(dirname "$0")"

readonly least_go=1.26

skip() {
  if [[ "${CI:-}" == true ]]; then
    echo "bench: cannot run: $1" >&2
    exit 1
  fi
  echo "bench: skipped: $1"
  exit 0
}

command -v go >/dev/null || skip "there is no Go toolchain ($least_go or newer) on PATH"
version=$(go env GOVERSION)
printf '%s\n' "$least_go" "${version#go}" | sort -C -V || skip "needs Go $least_go, found $version"
unshare --mount --pid --fork true 2>/dev/null ||
  skip "it needs root and the right to make mount and process namespaces"

bin=$(realpath -m ../../build/release/bin)
ndp=${NDP_BIN:-$bin/ndp} sim=${NDP_SIM_BIN:-$bin/ndp-sim} bare=${NDP_BARE_BIN:-$bin/bare_server}
[[ -x "$bare" ]] || bare=
for program in "$ndp" "$sim"; do
  if [[ ! -f "$program" || ! -x "$program" ]]; then
    echo "bench: $program is not there or no program; make build makes it" >&2
    exit 1
  fi
done
if [[ -n "$other" && ( ! -f "$other" || ! -x "$other" ) ]]; then
  echo "bench: OTHER: $other is not there or no program; give another device plugin's" >&2
  exit 1
fi

mkdir -p ../../build/bench
results=$(realpath ../../build/bench)
client=$results/client
# Minutes where modules have to be fetched and compiled, a second after that.
rc=0
timeout --kill-after=5 300 go build -o "$client" . || rc=$?
if ((rc != 0)); then
  echo "bench: building the kubelet's part $( ((rc == 124)) && echo "took over 300 s" || echo failed)" >&2
  exit 1
fi

# Plugins have the kubelet's folder built in, so the run gets a private one, and private process
# ids: nothing that it starts outlives it.
exec unshare --mount --pid --fork --kill-child --mount-proc bash -euc '
  if [[ ! -d /var/lib/kubelet ]]; then
    mount -t tmpfs tmpfs /var/lib
    mkdir /var/lib/kubelet
  fi
  mount -t tmpfs tmpfs /var/lib/kubelet
  mount -t tmpfs tmpfs /run
  exec "$@"' bench "$client" -ndp "$ndp" -sim "$sim" -other "$other" -bare "$bare" \
  -micro "$results" "$@"
