#!/usr/bin/env bash
# clang-tidy-19 over the sources that changed since a commit, or over all.
# Usage: tools/tidy.sh [BASE]
set -euo pipefail
cd "$(dirname "$0")/.."

[ -f build/tidy/compile_commands.json ] || cmake --preset tidy >/dev/null
# Generated headers are included by the rooms that speak gRPC.
cmake --build --preset tidy --target ndp_proto_generate ndp_version >/dev/null

if [ -n "${1:-}" ]; then
  files=$(git diff --name-only --diff-filter=d "$1" -- 'src/*.cc' 'sim/*.cc')
else
  files=$(git ls-files 'src/*.cc' 'sim/*.cc')
fi
files=$(for file in $files; do
  grep -q "\"$PWD/$file\"" build/tidy/compile_commands.json && echo "$file"
done || true)
[ -n "$files" ] || { echo "tidy: nothing to look at"; exit 0; }
echo "$files" | xargs -P "$(nproc)" -n 4 clang-tidy-19 -p build/tidy --quiet 2>/dev/null
echo "tidy: $(echo "$files" | wc -l) files clean"
