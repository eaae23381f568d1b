#!/usr/bin/env bash
# Unpacks the packages that generate.py reads into a folder, from Debian 13 by an apt configuration of its own.
#
#   k8s/devserver/types/fetch.sh FOLDER
#
# Nothing is installed. The mirror is that of the machine's own Debian 12 entry.
set -euo pipefail

folder="$(mkdir -p "$1" && cd "$1" && pwd)"
apt="$(mktemp -d)"
trap 'rm -rf "$apt"' EXIT
mkdir -p "$apt"/{lists/partial,cache/archives/partial,debs}
# The first stanza, which is that of the main archive.
awk 'BEGIN { RS = "" } NR == 1' /etc/apt/sources.list.d/debian.sources | sed 's/^Suites:.*/Suites: trixie/' >"$apt/debian.sources"
cat >"$apt/apt.conf" <<CONF
Dir::Etc::sourcelist "$apt/debian.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
APT::Sandbox::User "$(id -un)";
CONF
export APT_CONFIG="$apt/apt.conf"
apt-get update -q >&2
cd "$apt/debs"
apt-get download -q golang-k8s-api-dev=0.32.3-1 golang-k8s-apimachinery-dev=0.32.3-2 golang-k8s-client-go-dev=0.32.3-2 >&2
sha256sum --check --quiet <<SUMS
f7b52c32b3522bf8c6ccc7c9645d01c87cbee31ab22de2a92de56fac3e4dd772  golang-k8s-api-dev_0.32.3-1_all.deb
7b83b05ec2fd0bf6f1db8a2b0c0dcbfbdd5ec555210ea5c4dc09575346fdf2f6  golang-k8s-apimachinery-dev_0.32.3-2_all.deb
e011bd3035b6d4c93bff39fff54ad2842639d31c655a1393c59a8d5137fb5cb8  golang-k8s-client-go-dev_0.32.3-2_all.deb
SUMS
for deb in *.deb; do
  dpkg-deb -x "$deb" "$folder"
done
