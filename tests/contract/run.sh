#!/usr/bin/env bash
# The contract suite over DlDriver: on simulated machines, and on the real one where there is one.
# Usage: tests/contract/run.sh BIN_DIR
set -euo pipefail
bin=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

roots=
for profile in dgx-h100 dgx1-v100 pcie-t4 mixed; do
  "$bin/ndp-sim" up --profile "$profile" --dir "$dir/$profile" >/dev/null
  roots+="${profile//-/_}=$dir/$profile/root:"
done
NDP_CONTRACT_ROOTS=${roots%:} "$bin/contract_test" --gtest_brief=1
