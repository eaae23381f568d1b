#!/usr/bin/env bash
# Builds what the benchmarks need, and runs them one after another. `bench/run.sh --help` has the options.
#
#   --no-build   runs what is in build/
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=yes
options=()
for option; do
  case $option in
    --no-build) build= ;;
    -h | --help | --list) build=; options+=("$option") ;;
    *) options+=("$option") ;;
  esac
done
if [[ -n $build ]]; then
  (cd "$here/.." && cmake --preset release && cmake --build --preset release --target benchmarks) >&2
fi
exec python3 -B "$here/gather.py" "${options[@]}"
