#!/usr/bin/env bash
# For a machine with a real NVIDIA driver, before each release; three minutes at most. Runs the
# contract suite over the real library, then the plugin with the kubelet stand-in (Allocate and
# preferred allocation for every size), and keeps what NVML said for new simulator profiles.
# Usage: tests/device.sh [OUTPUT_FOLDER]     programs from NDP_BIN_DIR (default build/release/bin)
set -euo pipefail
cd "$(dirname "$0")/.."
bin="${NDP_BIN_DIR:-$PWD/build/release/bin}"
out="${1:-$PWD/build/device}"

if ! "$bin/ndp" inventory >/dev/null 2>&1; then
  echo "tests/device.sh: no NVIDIA driver here: skipped ($("$bin/ndp" inventory 2>&1 | head -c 200))"
  exit 0
fi
mkdir -p "$out"
"$bin/ndp" inventory >"$out/inventory.json"
echo "what NVML said: $out/inventory.json"
contract="${NDP_CONTRACT_TEST:-$PWD/build/dev/bin/contract_test}"
if [ -x "$contract" ]; then
  timeout 50 "$contract" --gtest_brief=1
else
  echo "tests/device.sh: no contract_test at $contract: want it built (make unit), or its path in NDP_CONTRACT_TEST" >&2
  exit 1
fi
NDP_BIN_DIR="$bin" timeout 120 python3 tests/device.py "$out"
