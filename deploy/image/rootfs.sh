#!/usr/bin/env bash
# Makes the root file system of the image: the stripped executable, the shared libraries that it needs, CA certificates,
# the user, the SBOM, and what scanners read: os-release and the versions of the packages. No shell, no package manager. Both build.sh and the Dockerfile use it.
#
#   deploy/image/rootfs.sh BINARY FOLDER [SYSROOT]
#
# FOLDER must not exist. All but the executable comes from the Debian packages in SYSROOT, by default this machine's; for one of
# another architecture it is that of deploy/image/sysroot.sh. SOURCE_DATE_EPOCH is the time of all files (0 if it is not set).
set -euo pipefail

readonly here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
case "${1:-}" in
  -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
esac
die() { printf 'rootfs.sh: %s\n' "$*" >&2; exit 1; }
[[ $# == 2 || $# == 3 ]] || die "BINARY and FOLDER are needed; see --help"
readonly binary=$1 root=$2 sysroot=${3:-/}
[[ -x $binary ]] || die "$binary is no executable"
[[ ! -e $root ]] || die "$root exists"
for tool in readelf dpkg-query python3; do
  command -v "$tool" >/dev/null || die "$tool is missing; run deploy/install-packages.sh image"
done
machine="$(python3 -B "$here/elf.py" architecture "$binary")"
readonly machine="${machine#* }"
command -v "$machine-strip" >/dev/null || die "$machine-strip is missing; run deploy/install-packages.sh image, or cross"
readonly authorities="$sysroot/usr/share/ca-certificates/mozilla"
[[ -d $authorities ]] || die "there are no CA certificates; install ca-certificates"

umask 022
mkdir -p "$root"/{usr/bin,usr/lib,usr/share/doc/runtime-watcher,etc/ssl/certs}
# The build id is a digest of more than this file: of names that contain where it was built.
"$machine-strip" --remove-section=.note.gnu.build-id -o "$root/usr/bin/runtime-watcher" "$binary"

# As the executable finds them: /lib and /lib64 lead to usr/ on every Debian since 12.
ln -s usr/lib "$root/lib"
needed="$(python3 -B "$here/elf.py" libraries "$binary" "$sysroot")"
read -r -d '' -a libraries <<<"$needed" || true
for library in "${libraries[@]}"; do
  case "$library" in
    /lib64/*) mkdir -p "$root/usr/lib64"; ln -sfn usr/lib64 "$root/lib64"; to="$root/usr$library" ;;
    /lib/*) to="$root/usr$library" ;;
    /usr/*) to="$root$library" ;;
    *) die "the library $library is in no system folder" ;;
  esac
  install -D -m 755 "$(readlink -f "$sysroot/$library")" "$to"
done

# The package's alone, as update-ca-certificates puts them together; a machine may have authorities of its own.
for certificate in "$authorities"/*.crt; do
  sed -e '$a\' "$certificate"
done >"$root/etc/ssl/certs/ca-certificates.crt"
printf 'root:x:0:0:root:/:/sbin/nologin\nruntime-watcher:x:10001:10001:Runtime Watcher:/:/sbin/nologin\n' >"$root/etc/passwd"
printf 'root:x:0:\nruntime-watcher:x:10001:\n' >"$root/etc/group"
printf 'passwd: files\ngroup: files\nhosts: files dns\n' >"$root/etc/nsswitch.conf"
install -m 644 "$sysroot/usr/lib/os-release" "$root/etc/os-release"
install -m 644 "$here/../../LICENSE" "$root/usr/share/doc/runtime-watcher/copyright"
python3 -B "$here/sbom.py" "$root" "$sysroot" "${libraries[@]}" >"$root/usr/share/doc/runtime-watcher/sbom.spdx.json"

find "$root" -type d -exec chmod 755 {} +
find "$root" -exec touch --no-dereference --date "@${SOURCE_DATE_EPOCH:-0}" {} +
