#!/usr/bin/env bash
# clang-tidy-19 over the sources that changed since a commit, or over all.
# Usage: tools/tidy.sh [BASE | all]
#
# BASE is by default the commit in .ci/tidy-base: the last one up to which the tree was seen clean.
# Move it (git rev-parse HEAD > .ci/tidy-base, in a commit of its own) after a run that was clean: a
# file takes about ten seconds, so the run in CI must not grow for ever.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -f build/tidy/compile_commands.json ] || cmake --preset tidy >/dev/null
# Generated headers are included by the rooms that speak gRPC.
cmake --build --preset tidy --target ndp_proto_generate ndp_version >/dev/null

base=${1:-$(cat .ci/tidy-base)}
if [ "$base" = all ]; then
  files=$(git ls-files 'src/*.cc' 'sim/*.cc')
else
  if ! git cat-file -e "$base^{commit}" 2>/dev/null; then
    echo "tidy: $base is not in this checkout (a shallow one?): nothing was looked at" >&2
    exit 0
  fi
  files=$(git diff --name-only --diff-filter=d "$base" -- 'src/*.cc' 'sim/*.cc')
fi
files=$(for file in $files; do
  grep -q "\"$PWD/$file\"" build/tidy/compile_commands.json && echo "$file"
done || true)
[ -n "$files" ] || { echo "tidy: nothing to look at"; exit 0; }
echo "$files" | xargs -P "$(nproc)" -n 4 clang-tidy-19 -p build/tidy --quiet 2>/dev/null
echo "tidy: $(echo "$files" | wc -l) files clean"
