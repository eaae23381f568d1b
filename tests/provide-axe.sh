#!/usr/bin/env bash
# Provides axe-core for the test of the page's accessibility. Debian has no package of it, so it is taken from npm.
#
#   RW_AXE="$(tests/provide-axe.sh)"
#
# prints the path of axe.min.js; progress goes to stderr. An RW_AXE that is already set is used as it is. Otherwise the
# script is downloaded once with npm, checked against a known digest, and kept under
# ${XDG_CACHE_HOME:-$HOME/.cache}/runtime-watcher.
set -euo pipefail

readonly version=4.14.1
readonly digest=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c

case "${1:-}" in
  "") ;;
  -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
  *) echo "provide-axe.sh: unknown argument '$1'; see --help" >&2; exit 2 ;;
esac

die() { printf 'provide-axe: %s\n' "$*" >&2; exit 1; }

if [[ -n ${RW_AXE:-} ]]; then
  [[ -r $RW_AXE ]] || die "RW_AXE=$RW_AXE cannot be read"
  echo "$RW_AXE"
  exit 0
fi

readonly cache="${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/runtime-watcher"
readonly axe="$cache/axe-$version/axe.min.js"
mkdir -p "$cache"
exec 9>"$cache/.axe-lock"
flock --wait 600 9 || die "another provide-axe.sh has held $cache/.axe-lock for ten minutes"
right() { [[ -r $1 ]] && sha256sum --check --status <<<"$digest  $1"; }
if right "$axe"; then
  echo "$axe"
  exit 0
fi

command -v npm >/dev/null || die "npm is missing; run deploy/install-packages.sh test, or set RW_AXE to an axe.min.js"
work="$(mktemp -d "$cache/.axe.XXXXXX")"
trap 'rm -rf "$work"' EXIT
echo "provide-axe: downloading axe-core $version" >&2
(cd "$work" && timeout 300 npm pack --silent "axe-core@$version" >/dev/null) || die "npm could not download axe-core"
tar -xzf "$work"/*.tgz -C "$work" package/axe.min.js
right "$work/package/axe.min.js" || die "the downloaded axe.min.js does not have the digest $digest"
mkdir -p "$cache/axe-$version"
mv "$work/package/axe.min.js" "$axe"
echo "$axe"
