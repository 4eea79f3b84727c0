#!/usr/bin/env bash
# Measures the build that `make quickstart` does, without ccache, in a folder of its own:
#   figure build.quickstart_cpu_minutes VALUE min    user and system time of all compilers
#   figure build.quickstart_wall_minutes VALUE min
# TREE, if set, is another checkout to measure instead of this one.
set -euo pipefail
tree=${TREE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$tree"
SECONDS=0
CCACHE_DISABLE=1 tools/build "$folder" release elasticdl python_descriptor >&2
# The second line of `times` is about child processes: user and system time as 1m2.345s.
times >"$folder/times"
awk -v wall="$SECONDS" '
  function seconds(text) { split(text, part, "m"); return part[1] * 60 + part[2] }
  NR == 2 {
    printf "figure build.quickstart_cpu_minutes %.1f min\n", (seconds($1) + seconds($2)) / 60
    printf "figure build.quickstart_wall_minutes %.1f min\n", wall / 60
  }' "$folder/times"
