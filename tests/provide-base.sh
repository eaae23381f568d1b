#!/usr/bin/env bash
# Provides the root file system of a Debian release for tests.
#
#   RW_IMAGE_BASE="$(tests/provide-base.sh)"    Debian 12 with the libraries of runtime-watcher, but no compiler, for the test of
#                                               deploy/image/Dockerfile
#   tests/provide-base.sh trixie                Debian 13 as it is first installed, with apt, for tests/debian13.sh
#
# prints the path of a tar archive, which mmdebstrap makes once from the machine's package sources and which is kept under
# ${XDG_CACHE_HOME:-$HOME/.cache}/runtime-watcher; progress goes to stderr.
set -euo pipefail

readonly recipe=1  # raise it when what is made below changes
die() { printf 'provide-base: %s\n' "$*" >&2; exit 1; }

case "${1:-bookworm}" in
  -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
  bookworm)
    options=(--variant=essential
      --include=binutils,python3,ca-certificates,libprometheus-cpp-core1.0,libboost-json1.81.0,libboost-container1.81.0,libsimdjson14,libyaml-cpp0.7)
    ;;
  trixie) options=(--variant=apt --include=ca-certificates) ;;
  *) echo "provide-base.sh: unknown argument '$1'; see --help" >&2; exit 2 ;;
esac
readonly suite=${1:-bookworm}

readonly cache="${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/runtime-watcher"
readonly base="$cache/base-$suite-r$recipe.tar"
mkdir -p "$cache"
exec 9>"$cache/.base-lock"
flock --wait 600 9 || die "another provide-base.sh has held $cache/.base-lock for ten minutes"
if [[ ! -s $base ]]; then
  command -v mmdebstrap >/dev/null || die "mmdebstrap is missing; run deploy/install-packages.sh test"
  work="$(mktemp "$cache/.base.XXXXXX.tar")"
  trap 'rm -f "$work"' EXIT
  echo "provide-base: making a Debian root file system ($suite)" >&2
  timeout 600 mmdebstrap --quiet "${options[@]}" --dpkgopt=path-exclude=/usr/share/locale/* --dpkgopt=path-exclude=/usr/share/man/* \
    "$suite" "$work" >&2 || die "mmdebstrap failed"
  mv "$work" "$base"
fi
echo "$base"
