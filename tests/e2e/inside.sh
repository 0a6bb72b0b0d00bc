#!/usr/bin/env bash
# Run by run.sh as the first process of new namespaces: gives the kubelet, containerd and the
# plugin the folders that they expect, empty and private, then runs the tests.
set -euo pipefail
cd "$(dirname "$0")/../.."

private() { mount -t tmpfs -o mode=0755 ndp-e2e "$1"; }

private "$NDP_E2E_DIR"
# Over their parents, so that no folder of the host is made only to serve as a mount point.
for folder in /run /var/lib /var/log; do private "$folder"; done
mkdir -p /var/lib/kubelet/device-plugins
# A kubelet sets these for the whole host; it is shown that they are set already.
setting() {
  local file=$NDP_E2E_DIR/settings/${1//\//.}
  mkdir -p "${file%/*}"
  echo "$2" >"$file"
  mount --bind "$file" "/proc/sys/$1"
}
setting vm/overcommit_memory 1
setting vm/panic_on_oom 0
setting kernel/panic 10
setting kernel/panic_on_oops 1
setting kernel/keys/root_maxkeys 1000000
setting kernel/keys/root_maxbytes 25000000
hostname e2e
ip link set lo up

# Not exec: this shell reaps what loses its parent, and whatever still runs ends with it.
status=0
build/venv/bin/python -m pytest -q --durations=8 tests/e2e "$@" || status=$?
exit "$status"
