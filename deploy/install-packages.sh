#!/usr/bin/env bash
# Installs the Debian 12 packages that a part of the work needs, and returns at once when they are there.
#
#   deploy/install-packages.sh [--list] [GROUP...]
#
#   --list  prints the packages' names, and installs nothing
#
#   libraries  what the binary is linked against, part of `build`
#   build   compiler and libraries for the binary and its unit tests (the default)
#   test    what the end-to-end tests and benchmarks run beside the binary
#   image   what deploy/image/build.sh needs beside a compiler
#   sanitize  the symbolizer that the sanitizers' suppressions need
#   cross   what an arm64 image needs beside `build` and `image`, and an emulator to start it with
#   kube    tools for building Kubernetes from Debian's source package
#   plot    what bench/run.sh draws its plots with
#
# Works as root or through sudo. No service is started, neither by the installation nor after it.
set -euo pipefail

readonly libraries="libboost1.81-dev libboost-json1.81-dev libssl-dev libnghttp2-dev libcli11-dev
  prometheus-cpp-dev libsimdjson-dev libyaml-cpp-dev libre2-dev"
declare -A groups=(
  [libraries]="$libraries"
  [build]="clang-19 lld-19 libclang-rt-19-dev clang-tidy-19 clang-format-19 cmake ninja-build ccache
    $libraries libboost-test1.81-dev libbenchmark-dev
    git curl openssl ca-certificates python3"
  [test]="nghttp2-client nginx-light wrk jq curl openssl python3 kubernetes-client npm bubblewrap umoci buildah mmdebstrap binutils doxygen abigail-tools pkg-config valgrind
    prometheus chromium chromium-driver python3-cryptography python3-selenium fonts-dejavu-core lua5.4 reuse
    iptables conntrack iproute2"
  [image]="umoci binutils ca-certificates python3 git openssl"
  [sanitize]="llvm-19"
  [cross]="binutils-aarch64-linux-gnu qemu-user-static bubblewrap"
  [kube]="dpkg-dev make jq rsync xz-utils patch python3 ca-certificates"
  [plot]="gnuplot-nox"
)
# The command that stands for a package where another origin may have provided it.
declare -A commands=([jq]=jq [git]=git [curl]=curl [python3]=python3 [make]=make [rsync]=rsync [patch]=patch
  [openssl]=openssl [npm]=npm [cmake]=cmake [nginx-light]=nginx [wrk]=wrk
  [iptables]=iptables [iproute2]=ip
  [kubernetes-client]=kubectl [pkg-config]=pkg-config [lua5.4]=lua5.4 [gnuplot-nox]=gnuplot)

list=
case "${1:-}" in
  -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
  --list) list=yes; shift ;;
esac

die() { printf 'install-packages: %s\n' "$*" >&2; exit 1; }

wanted=()
for group in "${@:-build}"; do
  [[ -n ${groups[$group]:-} ]] || die "unknown group '$group'; there are: ${!groups[*]}"
  read -r -d '' -a names <<<"${groups[$group]}" || true
  wanted+=("${names[@]}")
done

if [[ -n $list ]]; then
  printf '%s\n' "${wanted[@]}"
  exit 0
fi

command -v dpkg-query >/dev/null || die "this is no Debian; install by hand: ${wanted[*]}"

missing=()
for name in $(printf '%s\n' "${wanted[@]}" | sort -u); do
  [[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$name" 2>/dev/null) == ii* ]] && continue
  [[ -n ${commands[$name]:-} ]] && PATH="$PATH:/usr/sbin:/sbin" command -v "${commands[$name]}" >/dev/null && continue
  missing+=("$name")
done
if [[ ${#missing[@]} == 0 ]]; then
  echo "install-packages: all there"
  exit 0
fi

as_root=()
if [[ $(id -u) != 0 ]]; then
  command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; } ||
    die "not root and no usable sudo; have an administrator run: apt-get install ${missing[*]}"
  as_root=(sudo)
fi

echo "install-packages: installing ${#missing[@]} packages: ${missing[*]}"

# A package such as nginx would be started as a service; a policy says no while we install. One that is there stays.
policy=/usr/sbin/policy-rc.d
log="$(mktemp)"
placed=
cleanup() {
  [[ -z $placed ]] || "${as_root[@]}" rm -f "$policy"
  rm -f "$log"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# Those that are not there yet, and that a package would enable.
services=()
for service in nginx prometheus; do
  PATH="$PATH:/usr/sbin" command -v "$service" >/dev/null || services+=("$service")
done
if [[ ! -e $policy ]]; then
  placed=yes
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
fi

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 \
    -o Dpkg::Use-Pty=0 "$@"
}

for attempt in 1 2 3; do
  # Lists are read again only when what is there does not do.
  if ((attempt > 1)) || ! apt-cache show "${missing[@]}" >/dev/null 2>&1; then
    apt update >"$log" 2>&1 || echo "install-packages: reading package lists: $(tail -n 1 "$log")" >&2
  fi
  if apt install --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
    # Installed, and not to be started at the next boot either.
    for service in "${services[@]}"; do
      command -v systemctl >/dev/null && "${as_root[@]}" systemctl disable --quiet "$service" 2>/dev/null || true
    done
    echo "install-packages: done"
    exit 0
  fi
  echo "install-packages: attempt $attempt of 3 failed: $(tail -n 1 "$log")" >&2
done
tail -n 20 "$log" >&2
die "could not install: ${missing[*]}"
