#!/usr/bin/env bash
# `make bench`: the micro benchmarks of single functions, then the whole program on a simulated
# node (tests/bench). OTHER=<program> adds another device plugin to the second part.
set -euo pipefail
cd "$(dirname "$0")/.."

for benchmark in build/release/bin/*_bench; do
  [[ -x "$benchmark" ]] || continue
  echo "== ${benchmark##*/}"
  "$benchmark" --benchmark_color=false --benchmark_min_time=0.1
done
echo "== the program on a simulated node"
exec tests/bench/run.sh
