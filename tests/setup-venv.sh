#!/usr/bin/env bash
# Makes build/venv, the virtual environment of the Python tests, unless it is there and complete.
# Usage: tests/setup-venv.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-build/venv}
wanted=$(sha256sum tests/python/requirements.txt | cut -c1-64)
if [ -f "$venv/complete" ] && [ "$(cat "$venv/complete")" = "$wanted" ]; then exit 0; fi
mkdir -p "$(dirname "$venv")"
# Debian's python, whatever comes first on PATH: it has the packages that apt installed.
/usr/bin/python3 -m venv --system-site-packages "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r tests/python/requirements.txt
echo "$wanted" > "$venv/complete"
