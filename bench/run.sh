#!/usr/bin/env bash
# `make bench`: the micro benchmarks of single functions, then the whole program on simulated nodes
# (tests/bench), which prints one table of all. OTHER=<program> adds another device plugin to it.
# What each line means: docs/performance.md.
set -euo pipefail
export OTHER=${OTHER:+$(realpath -m "$OTHER")}
cd "$(dirname "$0")/.."

# Each takes some ten seconds; the limit is for a machine that is busy with something else.
readonly limit_s=90
results=build/bench
mkdir -p "$results"
rm -f "$results"/*.json

for benchmark in build/release/bin/*_bench; do
  [[ -x "$benchmark" ]] || continue
  name=${benchmark##*/}
  echo "== $name"
  rc=0
  timeout --kill-after=5 "$limit_s" "$benchmark" --benchmark_color=false \
    --benchmark_min_time=0.1 --benchmark_out="$results/$name.json" --benchmark_out_format=json || rc=$?
  case $rc in
    0) ;;
    124 | 137) echo "bench: $name did not end within $limit_s s: its lines are missing below" ;;
    *) echo "bench: $name failed with exit status $rc: its lines are missing below" ;;
  esac
  ((rc == 0)) || rm -f "$results/$name.json"
done
echo "== the program on simulated nodes"
exec tests/bench/run.sh
