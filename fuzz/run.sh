#!/usr/bin/env bash
# `make fuzz`: builds every fuzzer and runs each for SECONDS_EACH (20) from its seeds. A
# crash leaves its input beside the program and ends with a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset fuzz "-DNDP_FUZZ_SECONDS=${SECONDS_EACH:-20}" > /dev/null
cmake --build --preset fuzz --target fuzzers -j "${JOBS:-$(nproc)}"
exec ctest --test-dir build/fuzz -L fuzz --output-on-failure --no-tests=error
