#!/usr/bin/env bash
# Installs what is needed, builds, provides kube-apiserver and etcd, and runs all tests.
#
#   tests/run.sh [--fast] [-- CTEST-OPTIONS]
#
#   --fast    leaves out the tests that need kube-apiserver and etcd, which take minutes to provide the first time
#
# Any folder, any number of times. Ends with ctest's summary and its exit code. What follows -- goes to ctest, such as
# -R NAME. RW_TEST_CRDS may name a folder with the real custom resource definitions.
set -euo pipefail

readonly root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
fast=
while (($#)); do
  case "$1" in
    --fast) fast=yes ;;
    --) shift; break ;;
    -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) echo "run.sh: unknown argument '$1'; see --help" >&2; exit 2 ;;
  esac
  shift
done

step() { printf '\n[%4ds] %s\n' "$SECONDS" "$*"; }

step "Packages"
"$root/deploy/install-packages.sh" build test

if [[ -z $fast ]]; then
  step "kube-apiserver and etcd"
  KUBEBUILDER_ASSETS="$("$root/tests/provide-kube.sh")"
  export KUBEBUILDER_ASSETS
fi

step "Kubernetes' Go packages"
RW_TEST_TYPES="$("$root/tests/provide-types.sh")"
export RW_TEST_TYPES

step "helm"
if RW_HELM="$("$root/tests/provide-helm.sh")"; then
  export RW_HELM
else
  echo "run.sh: the tests of the charts are skipped"
fi

step "axe-core"
if RW_AXE="$("$root/tests/provide-axe.sh")"; then
  export RW_AXE
else
  echo "run.sh: the test of the page's accessibility is skipped"
fi

step "A root file system for the image's Dockerfile"
if RW_IMAGE_BASE="$("$root/tests/provide-base.sh")"; then
  export RW_IMAGE_BASE
else
  echo "run.sh: the test of the Dockerfile is skipped"
fi

step "Build"
cd "$root"
cmake --preset release >/dev/null
cmake --build --preset release

step "Tests"
exec ctest --preset release -j "$(nproc)" ${fast:+--label-exclude kube} "$@"
