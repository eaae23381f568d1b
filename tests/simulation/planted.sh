#!/usr/bin/env bash
# Shows that the simulation notices bugs: applies each planted/X.patch to a copy of the sources, one at a time, and
# prints the first seed that fails. Ends with 1 if a bug stays unnoticed in 10,000 seeds. Not part of CI.
#
#   tests/simulation/planted.sh [BUG...]      such as: edited flight
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
patches="$root/tests/simulation/planted"
bugs=("$@")
if [[ ${#bugs[@]} == 0 ]]; then
  for patch in "$patches"/*.patch; do bugs+=("$(basename "$patch" .patch)"); done
fi

copy="$(mktemp -d)"
trap 'rm -rf "$copy"' EXIT
git -C "$root" archive HEAD | tar x -C "$copy"
cd "$copy"
cmake --preset release >/dev/null

missed=0
for bug in "${bugs[@]}"; do
  patch -s -p1 <"$patches/$bug.patch"
  ninja -C build simulation >/dev/null
  if build/tests/simulation/simulation --seeds 1..10000 >"$copy/output"; then
    echo "$bug: not noticed"
    missed=1
  elif ! grep -q "^seed [0-9]* failed:" "$copy/output"; then
    echo "$bug: the simulation ends with an exception"
  else
    sed -n "s/^seed \([0-9]*\) failed:/$bug: seed \1/p" "$copy/output"
    sed -n '/^seed [0-9]* failed:/,$ { /^  /p }' "$copy/output"
  fi
  patch -s -R -p1 <"$patches/$bug.patch"
done
exit "$missed"
