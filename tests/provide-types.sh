#!/usr/bin/env bash
# Provides the Go packages of Kubernetes that the table of built-in kinds is made of, and held to.
#
#   export RW_TEST_TYPES="$(tests/provide-types.sh)"
#
# prints the folder with golang-k8s-api-dev, golang-k8s-apimachinery-dev and golang-k8s-client-go-dev 0.32.3 of Debian 13,
# unpacked; progress goes to stderr. They are downloaded once, by an apt configuration of its own with the mirrors of the
# machine's Debian entries, and kept under ${XDG_CACHE_HOME:-$HOME/.cache}/runtime-watcher. Nothing is installed.
set -euo pipefail

case "${1:-}" in
  "") ;;
  -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
  *) echo "provide-types.sh: unknown argument '$1'; see --help" >&2; exit 2 ;;
esac
die() { printf 'provide-types: %s\n' "$*" >&2; exit 1; }

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
readonly cache="${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/runtime-watcher"
readonly folder="$cache/go-types-0.32.3"
mkdir -p "$cache"
exec 9>"$cache/.types-lock"
flock --wait 600 9 || die "another provide-types.sh has held $cache/.types-lock for ten minutes"
if [[ -d $folder ]]; then
  echo "$folder"
  exit 0
fi

work="$(mktemp -d "$cache/.types.XXXXXX")"
trap 'rm -rf "$work"' EXIT
mkdir "$work/debs" "$work/root"
APT_CONFIG="$(python3 -B "$here/../deploy/private_apt.py" "$work/apt" --suite trixie)"
export APT_CONFIG
echo "provide-types: downloading Kubernetes' Go packages" >&2
for attempt in 1 2 3; do
  if apt-get update -q >"$work/log" 2>&1 && (cd "$work/debs" && apt-get download -q golang-k8s-api-dev=0.32.3-1 \
    golang-k8s-apimachinery-dev=0.32.3-2 golang-k8s-client-go-dev=0.32.3-2) >>"$work/log" 2>&1; then
    break
  fi
  echo "provide-types: attempt $attempt of 3 failed: $(tail -n 1 "$work/log")" >&2
  [[ $attempt != 3 ]] || die "golang-k8s-api-dev 0.32.3 and its like can't be downloaded from Debian 13; the tests of built-in kinds need them"
done
cd "$work/debs"
sha256sum --check --quiet >&2 <<SUMS || die "the packages are not those that the table was made of"
f7b52c32b3522bf8c6ccc7c9645d01c87cbee31ab22de2a92de56fac3e4dd772  golang-k8s-api-dev_0.32.3-1_all.deb
7b83b05ec2fd0bf6f1db8a2b0c0dcbfbdd5ec555210ea5c4dc09575346fdf2f6  golang-k8s-apimachinery-dev_0.32.3-2_all.deb
e011bd3035b6d4c93bff39fff54ad2842639d31c655a1393c59a8d5137fb5cb8  golang-k8s-client-go-dev_0.32.3-2_all.deb
SUMS
for deb in *.deb; do
  dpkg-deb -x "$deb" "$work/root"
done
mv "$work/root" "$folder"
echo "$folder"
