#!/usr/bin/env bash
# Installs the packages that a part of the work needs, and returns at once when they are there: on Debian 12 and 13, and on
# Ubuntu 24.04. There is one list. The newest Boost from 1.81 on is taken that the release has, and the oldest clang from 19 on.
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

readonly libraries="libboost@BOOST-dev libboost-json@BOOST-dev libssl-dev libnghttp2-dev libcli11-dev
  prometheus-cpp-dev libsimdjson-dev libyaml-cpp-dev libre2-dev"
declare -A groups=(
  [libraries]="$libraries"
  [build]="clang-@CLANG lld-@CLANG libclang-rt-@CLANG-dev clang-tidy-@CLANG clang-format-@CLANG cmake ninja-build ccache pkg-config
    $libraries libboost-test@BOOST-dev libbenchmark-dev
    git curl openssl ca-certificates python3"
  [test]="nghttp2-client nginx-light wrk jq curl openssl python3 kubernetes-client npm bubblewrap umoci buildah mmdebstrap binutils doxygen abigail-tools pkg-config valgrind
    prometheus chromium chromium-driver python3-cryptography python3-selenium fonts-dejavu-core lua5.4 reuse
    iptables conntrack iproute2"
  [image]="umoci binutils ca-certificates python3 git openssl"
  [sanitize]="llvm-@CLANG"
  [cross]="binutils-aarch64-linux-gnu qemu-user-static bubblewrap"
  [kube]="dpkg-dev make jq rsync xz-utils patch python3 ca-certificates"
  [plot]="gnuplot-nox"
)
# What these are for, to who has another system.
readonly roles="a C++20 compiler: clang from 19 on with lld and compiler-rt; CMake from 3.25 on, Ninja, pkg-config; Boost from 1.81 on with
JSON and Test; OpenSSL 3, nghttp2, CLI11 2, prometheus-cpp, simdjson, yaml-cpp, RE2, Google Benchmark; git, curl, openssl and Python 3.9"
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

release="$(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-}")" || true
readonly release="${release:-this system}"
command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
  die "$release has no apt; install by hand: $roles"

templates=()
for group in "${@:-build}"; do
  [[ -n ${groups[$group]:-} ]] || die "unknown group '$group'; there are: ${!groups[*]}"
  read -r -d '' -a names <<<"${groups[$group]}" || true
  templates+=("${names[@]}")
done

installed="$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 2>/dev/null | sed -n 's/^ii *//p')"
# versions PATTERN FROM: the versions from FROM on in names of installed packages, or else of those that the release has, in order.
versions() {
  local found
  found="$(sed -nE "s/^$1\$/\1/p" <<<"$installed" | awk -v from="$2" '$1 >= from' | sort -n)"
  [[ -n $found ]] || found="$(apt-cache pkgnames 2>/dev/null | sed -nE "s/^$1\$/\1/p" | awk -v from="$2" '$1 >= from' | sort -n)"
  echo "$found"
}
# Sets `wanted` to the packages' names. Ends with 1 where the release has no version that does.
name_packages() {
  boost="$(versions 'libboost-json1\.([0-9]+)-dev' 81 | tail -n 1)"
  clang="$(versions 'clang-([0-9]+)' 19 | head -n 1)"
  wanted=("${templates[@]//@BOOST/1.$boost}")
  wanted=("${wanted[@]//@CLANG/$clang}")
  [[ "${templates[*]}" != *@BOOST* || -n $boost ]] && [[ "${templates[*]}" != *@CLANG* || -n $clang ]]
}
no_version() {
  die "$release has no clang from 19 on, or no Boost from 1.81 on with JSON (found: clang '${clang}', Boost '${boost:+1.$boost}'); install by hand: $roles"
}

if [[ -n $list ]]; then
  name_packages || no_version
  printf '%s\n' "${wanted[@]}"
  exit 0
fi

as_root=()
require_root() {
  [[ $(id -u) != 0 ]] || return 0
  command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; } ||
    die "not root and no usable sudo; have an administrator run: $*"
  as_root=(sudo)
}
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 \
    -o Dpkg::Use-Pty=0 "$@"
}
log="$(mktemp)"
placed=
policy=/usr/sbin/policy-rc.d
cleanup() {
  [[ -z $placed ]] || "${as_root[@]}" rm -f "$policy"
  rm -f "$log"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
read_lists() {
  apt -o APT::Update::Error-Mode=any update >"$log" 2>&1 && return
  echo "install-packages: apt-get update: $(grep -m 1 '^[EW]:' "$log" || tail -n 1 "$log")" >&2
  return 1
}

if ! name_packages; then
  require_root "apt-get update"
  read_lists || die "the lists of packages can't be read"
  name_packages || no_version
fi
missing=()
for name in $(printf '%s\n' "${wanted[@]}" | sort -u); do
  grep -qx -- "$name" <<<"$installed" && continue
  [[ -n ${commands[$name]:-} ]] && PATH="$PATH:/usr/sbin:/sbin" command -v "${commands[$name]}" >/dev/null && continue
  missing+=("$name")
done
if [[ ${#missing[@]} == 0 ]]; then
  echo "install-packages: all there"
  exit 0
fi
require_root "apt-get install ${missing[*]}"
# Lists are read again only where those that are there do not name all.
apt-cache show "${missing[@]}" >"$log" 2>&1 || read_lists || true  # the installation says what is missing
offered="$(apt-cache pkgnames)"
for at in "${!missing[@]}"; do
  name=${missing[at]}
  grep -qx -- "$name" <<<"$offered" && continue
  # The programs that tests run are not worth a build that does not begin: the tests of those that are absent are skipped.
  [[ " ${groups[test]} " == *[[:space:]]"$name"[[:space:]]* ]] ||
    die "$release has no package $name; install by hand what is not there of: $roles"
  echo "install-packages: $release has no package $name; what needs it is skipped, or says so" >&2
  unset "missing[at]"
done

echo "install-packages: $release: installing ${#missing[@]} packages: ${missing[*]}"

# A package such as nginx would be started as a service; a policy says no while we install. One that is there stays.
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

for attempt in 1 2 3; do
  ((attempt == 1)) || read_lists || true
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
