#!/usr/bin/env bash
# Restarts, reloads and driver sessions by the hundred, the largest list, and how fast the plugin
# stops, against the release build.
set -euo pipefail
cd "$(dirname "$0")/../.."
export NDP_BIN_DIR="${NDP_BIN_DIR:-$PWD/build/release/bin}"
tests/setup-venv.sh
export NDP_STOP_WITHIN_S=2
exec build/venv/bin/python -m pytest -q -s -n 3 tests/soak tests/integration/test_stopping.py "$@"
