#!/usr/bin/env bash
# Installs what is needed, builds, provides Kubernetes, and runs all tests.
#
#   tests/run.sh [--fast] [-- CTEST-OPTIONS]
#
#   --fast    leaves out the tests that need Kubernetes, which takes minutes to provide the first time
#
# Any folder, any number of times. Ends with ctest's summary, what was skipped and why, and ctest's exit code. What follows --
# goes to ctest, such as -R NAME. The tests with the label node-long take long, and run with `-- -C long` only. RW_TEST_CRDS may name
# a folder with the real custom resource definitions.
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
  step "Kubernetes, etcd and containerd"
  KUBEBUILDER_ASSETS="$("$root/tests/provide-kube.sh")"
  export KUBEBUILDER_ASSETS
fi

# provide VARIABLE WHAT SCRIPT TESTS
provide() {
  local value
  step "$2"
  if value="$("$root/tests/$3")"; then
    export "$1=$value"
  else
    echo "run.sh: $4 skipped"
  fi
}
provide RW_TEST_TYPES "Kubernetes' Go packages" provide-types.sh "the tests of the table of built-in kinds are"
provide RW_HELM helm provide-helm.sh "the tests of the charts are"
provide RW_AXE axe-core provide-axe.sh "the test of the page's accessibility is"
provide RW_IMAGE_BASE "A root file system for the image's Dockerfile" provide-base.sh "the test of the Dockerfile is"

step "Build"
cd "$root"
cmake --preset release >/dev/null
cmake --build --preset release

step "Tests"
code=0
log=build/Testing/Temporary/LastTest.log
rm -f "$log"
# Most tests wait more than they work.
ctest --preset release -j "$(($(nproc) * 3 / 2))" ${fast:+--label-exclude kube} "$@" || code=$?

step "Skipped"
# Scripts say "skipped: REASON", Python's unittest says "... skipped 'REASON'".
awk '/^[0-9]+\/[0-9]+ Test(ing)?: / { test = $NF }
  match($0, /skipped(: |, | ["\47]).*/) {
    reason = substr($0, RSTART, RLENGTH)
    gsub(/^skipped[:,]? ["\47]?|["\47]$/, "", reason)
    if (!said[test, reason]++) print "  " test ": " reason
  }' "$log" || true  # none, if ctest ran nothing
[[ -z $fast ]] || echo "  all tests with the label kube: --fast"
[[ " $* " == *" -C long "* ]] || echo "  e2e.node_long: it takes five minutes; by hand, with tests/run.sh -- -C long -L node-long"
exit "$code"
