#!/usr/bin/env bash
# What has to work on Debian 13 as it is first installed, from a clean clone of the commit that is checked out.
#
#   tests/debian13.sh [--cold] [clang | gcc]
#
#   clang   the README's commands: deploy/quickstart.sh, then tests/run.sh --fast (the default)
#   gcc     builds all with the release's gcc in place of clang, warnings as errors, and runs the unit tests
#   --cold  neither uses what earlier runs compiled, downloaded or passed, as on a fresh machine
#
# The machine is a folder, entered with bubblewrap: its packages, processes and files are its own, the network is this machine's.
# Needs root, deploy/install-packages.sh test, and 6 GiB of disk while it runs. A commit whose files have passed is not tried again.
# Ends with 0 if all did, and prints how long each command took.
set -euo pipefail

readonly root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly cache="${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/runtime-watcher"
die() { printf 'debian13: %s\n' "$*" >&2; exit 1; }

cold=
compiler=clang
while (($#)); do
  case "$1" in
    -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    --cold) cold=yes ;;
    clang | gcc) compiler=$1 ;;
    *) echo "debian13.sh: unknown argument '$1'; see --help" >&2; exit 2 ;;
  esac
  shift
done

[[ $(id -u) == 0 ]] || { echo "skipped: it makes a machine's root file system, and needs root"; exit 77; }
command -v bwrap >/dev/null || die "bwrap is missing; run deploy/install-packages.sh test"
tree="$(git -C "$root" rev-parse 'HEAD^{tree}')" || die "$root is no clone"
readonly passed="$cache/debian13/passed-$compiler"
if [[ -z $cold ]] && grep -qx "$tree" "$passed" 2>/dev/null; then
  echo "debian13: these files have passed already"
  exit 0
fi

work="$(mktemp -d)"
running=
cleanup() {
  [[ -z $running ]] || kill -KILL "$running" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# What it has in common with earlier runs: packages as they were downloaded, what the compiler made, and what tests/provide-*.sh did.
shared="$cache/debian13"
if [[ -n $cold ]]; then
  shared="$work/shared"
fi
mkdir -p "$shared"/{archives/partial,ccache,cache} "$work/machine"
base="$("$root/tests/provide-base.sh" trixie)"
tar -xf "$base" -C "$work/machine" --exclude='./dev/*'
cp -L /etc/resolv.conf "$work/machine/etc/resolv.conf"
for file in /etc/npmrc /root/.npmrc; do
  [[ ! -f $file ]] || cp "$file" "$work/machine$file"  # where this machine finds packages of npm
done
echo 'Binary::apt-get::APT::Keep-Downloaded-Packages "true"; APT::Keep-Downloaded-Packages "true";' >"$work/machine/etc/apt/apt.conf.d/99keep"
git clone --quiet "$root" "$work/machine/root/runtime-watcher"

# on_machine NAME COMMAND: shows when it ends; its output where it fails.
on_machine() {
  local began=$SECONDS code=0
  printf 'debian13: %s\n' "$1"
  # A machine that another program of this test started is stopped with it. bwrap hides parts of /proc, with which no container could
  # be started in it.
  bwrap --bind "$work/machine" / --dev-bind /dev /dev --proc /proc --ro-bind /sys /sys --perms 1777 --tmpfs /tmp --tmpfs /run \
    --bind "$shared/archives" /var/cache/apt/archives --bind "$shared/ccache" /root/.ccache --bind "$shared/cache" /root/.cache \
    --unshare-pid --unshare-uts --hostname debian13 --die-with-parent --cap-add ALL --clearenv --setenv HOME /root \
    --setenv PATH /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --setenv LANG C.UTF-8 --setenv CCACHE_DIR /root/.ccache \
    --chdir /root/runtime-watcher unshare --mount-proc bash -c "$2" &
  running=$!
  wait "$running" || code=$?
  running=
  ((code == 0)) || die "$1: ended with $code after $((SECONDS - began)) s"
  printf 'debian13: %s: %d s\n' "$1" $((SECONDS - began))
}

if [[ $compiler == gcc ]]; then
  on_machine "packages" "deploy/install-packages.sh build && apt-get install -qq -y --no-install-recommends g++ >/dev/null"
  on_machine "build with gcc" "cmake --preset release -DCMAKE_CXX_COMPILER=g++ -DRW_WERROR=ON && cmake --build --preset release -- -k 0"
  on_machine "unit tests" "ctest --preset release -L unit -j $(nproc)"
else
  on_machine "deploy/quickstart.sh" deploy/quickstart.sh
  on_machine "tests/run.sh --fast" "tests/run.sh --fast"
fi
mkdir -p "${passed%/*}"
echo "$tree" >>"$passed"
