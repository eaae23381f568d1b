#!/usr/bin/env bash
# Makes the root file system of the image: the stripped executable, the shared libraries that it needs, CA certificates,
# the user, the SBOM, and what scanners read: os-release and the versions of the packages. No shell, no package manager. Both build.sh and the Dockerfile use it.
#
#   deploy/image/rootfs.sh BINARY FOLDER
#
# FOLDER must not exist. SOURCE_DATE_EPOCH is the time of all files (0 if it is not set).
set -euo pipefail

readonly here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
case "${1:-}" in
  -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
esac
die() { printf 'rootfs.sh: %s\n' "$*" >&2; exit 1; }
[[ $# == 2 ]] || die "two arguments are needed, BINARY and FOLDER; see --help"
readonly binary=$1 root=$2
[[ -x $binary ]] || die "$binary is no executable"
[[ ! -e $root ]] || die "$root exists"
for tool in strip ldd dpkg-query python3; do
  command -v "$tool" >/dev/null || die "$tool is missing; run deploy/install-packages.sh build"
done
[[ -s /etc/ssl/certs/ca-certificates.crt ]] || die "there are no CA certificates; install ca-certificates"

umask 022
mkdir -p "$root"/{usr/bin,usr/lib,usr/share/doc/runtime-watcher,etc/ssl/certs}
# The build id is a digest of more than this file: of names that contain where it was built.
strip --remove-section=.note.gnu.build-id -o "$root/usr/bin/runtime-watcher" "$binary"

# As the executable finds them: /lib and /lib64 lead to usr/ on every Debian since 12.
ln -s usr/lib "$root/lib"
needed="$(ldd "$binary")"
! missing="$(grep 'not found' <<<"$needed")" || die "libraries are missing:$missing"
libraries=()
while read -r library; do
  libraries+=("$library")
  case "$library" in
    /lib64/*) mkdir -p "$root/usr/lib64"; ln -sfn usr/lib64 "$root/lib64"; to="$root/usr$library" ;;
    /lib/*) to="$root/usr$library" ;;
    /usr/*) to="$root$library" ;;
    *) die "the library $library is in no system folder" ;;
  esac
  install -D -m 755 "$(readlink -f "$library")" "$to"
done < <(awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' <<<"$needed" | LC_ALL=C sort)

install -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
printf 'root:x:0:0:root:/:/sbin/nologin\nruntime-watcher:x:10001:10001:Runtime Watcher:/:/sbin/nologin\n' >"$root/etc/passwd"
printf 'root:x:0:\nruntime-watcher:x:10001:\n' >"$root/etc/group"
printf 'passwd: files\ngroup: files\nhosts: files dns\n' >"$root/etc/nsswitch.conf"
install -m 644 "$(readlink -f /etc/os-release)" "$root/etc/os-release"
install -m 644 "$here/../../LICENSE" "$root/usr/share/doc/runtime-watcher/copyright"
python3 -B "$here/sbom.py" "$root" "${libraries[@]}" >"$root/usr/share/doc/runtime-watcher/sbom.spdx.json"

find "$root" -type d -exec chmod 755 {} +
find "$root" -exec touch --no-dereference --date "@${SOURCE_DATE_EPOCH:-0}" {} +
