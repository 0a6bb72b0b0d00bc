#!/usr/bin/env bash
# Installs the Debian packages that building and testing need, if any is missing.
# Usage: tools/install-deps.sh [build|lint|fuzz|release|e2e]
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config make git
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libc-ares-dev libre2-dev
  libabsl-dev zlib1g-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev
  libevent-dev libgtest-dev libgmock-dev libbenchmark-dev
  python3 python3-venv python3-pytest python3-pytest-xdist python3-yaml)
case "${1:-build}" in
  lint) packages=(clang-19 clang-tidy-19 clang-format-19) ;;
  fuzz) packages=(clang-19 libclang-rt-19-dev) ;;
  release) packages=(strace binutils) ;;
  e2e) packages=(runc busybox-static iproute2 gcc libc6-dev) ;;
esac

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
    missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "These Debian packages are needed, and there is no apt-get here: ${missing[*]}" >&2
  exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "These packages are missing. Install them as root, then run this again:" >&2
  echo "  sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
