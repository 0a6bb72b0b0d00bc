#!/usr/bin/env bash
# The control group below which a test node keeps all its pods, in every hierarchy of the host,
# version 1 or 2.
# Usage: cgroup.sh make|remove /NAME
set -euo pipefail
name=$2

hierarchies() { awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/mounts | sort -u; }

make() {
  local root=$1
  mkdir -p "$root$name"
  # Version 1: a cpuset without processors or memory nodes takes no process.
  for file in cpuset.cpus cpuset.mems; do
    if [[ -f "$root/cgroup.clone_children" && -f "$root/$file" ]]; then
      cat "$root/$file" >"$root$name/$file"
    fi
  done
  # Version 2: controllers are handed down one by one.
  if [[ -s "$root/cgroup.controllers" ]]; then
    for controller in $(cat "$root/cgroup.controllers"); do
      for file in "$root" "$root$name"; do
        echo "+$controller" >"$file/cgroup.subtree_control" ||
          echo "cgroup.sh: cannot hand down $controller in $file" >&2
      done
    done
  fi
}

remove() {
  local root=$1 try
  for try in {1..50}; do
    [[ -d "$root$name" ]] || return 0
    find "$root$name" -depth -type d -exec rmdir {} + 2>/dev/null || true
    [[ -d "$root$name" ]] || return 0
    # Processes that were killed a moment ago may still be on their way out.
    sleep 0.1
  done
  echo "cgroup.sh: $root$name cannot be removed; in it: $(find "$root$name" -name cgroup.procs -exec cat {} + | tr '\n' ' ')" >&2
}

for hierarchy in $(hierarchies); do "$1" "$hierarchy"; done
