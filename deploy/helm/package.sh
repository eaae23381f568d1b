#!/usr/bin/env bash
# Copies both charts to FOLDER without symbolic links, each of which helm would name when it reads the chart.
#
#   deploy/helm/package.sh FOLDER
#
# It replaces FOLDER/runtime-watcher and FOLDER/runtime-watcher-skr.
set -euo pipefail

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; }
case "${1:-}" in
  -h | --help) usage; exit 0 ;;
  "" | -*) usage >&2; exit 2 ;;
esac
readonly folder=$1
readonly charts="$(dirname "${BASH_SOURCE[0]}")"
mkdir -p "$folder"
if [[ $folder -ef $charts ]]; then
  echo "package.sh: $folder has the charts themselves; name another folder" >&2
  exit 2
fi
for chart in "$charts"/*/Chart.yaml; do
  from="$(dirname "$chart")"
  to="$folder/$(basename "$from")"
  rm -rf "$to"
  cp -rL "$from" "$to"
  while read -r pattern; do
    # As helm reads .helmignore: with a slash a path from the chart, otherwise a name in any folder.
    if [[ $pattern == */* ]]; then
      (cd "$to" && rm -rf -- $pattern)
    else
      find "$to" -name "$pattern" -delete
    fi
  done <"$from/.helmignore"
done
