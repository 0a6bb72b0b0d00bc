#!/usr/bin/env bash
# The tests written in Python, against the programs of one build (NDP_BIN_DIR, default the dev
# build). Further arguments go to pytest. Most of a test is waiting, so there are four at a time for
# each processor (NDP_TEST_JOBS).
set -euo pipefail
cd "$(dirname "$0")/.."
export NDP_BIN_DIR="${NDP_BIN_DIR:-$PWD/build/dev/bin}"
# Debian's abseil was built without ASan: its containers and ours disagree on annotations.
export ASAN_OPTIONS="detect_container_overflow=0:${ASAN_OPTIONS:-}"
tests/setup-venv.sh
exec build/venv/bin/python -m pytest -q -n "${NDP_TEST_JOBS:-$(($(nproc) * 4))}" tests/integration tests/python "$@"
