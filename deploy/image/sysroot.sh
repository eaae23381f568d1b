#!/usr/bin/env bash
# Provides the root file system of another architecture: what its executable is linked against, and its image's files come from.
#
#   deploy/image/sysroot.sh [--again] ARCHITECTURE
#
#   --again   with the packages of today, although there is one
#
# prints its folder; progress goes to stderr. ARCHITECTURE is Debian's name, such as arm64. The packages of Debian 12 are downloaded
# once, by an apt configuration of its own, unpacked, and kept under ${XDG_CACHE_HOME:-$HOME/.cache}/runtime-watcher. Nothing is
# installed or run of them, and this machine's dpkg never hears of the architecture; the folder's own dpkg database has them.
set -euo pipefail

readonly here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly recipe=1  # raise it when what is made below changes
die() { printf 'sysroot.sh: %s\n' "$*" >&2; exit 1; }

again=
architecture=
while (($#)); do
  case "$1" in
    -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    --again) again=yes ;;
    -*) die "unknown argument '$1'; see --help" ;;
    *) [[ -z $architecture ]] || die "two architectures: $architecture and $1"; architecture=$1 ;;
  esac
  shift
done
[[ $architecture =~ ^[a-z0-9]+$ ]] || die "an architecture is needed; see --help"

readonly cache="${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/runtime-watcher"
readonly folder="$cache/sysroot-bookworm-$architecture-r$recipe"
mkdir -p "$cache"
exec 9>"$cache/.sysroot-lock"
flock --wait 600 9 || die "another sysroot.sh has held $cache/.sysroot-lock for ten minutes"
if [[ -d $folder && -z $again ]]; then
  echo "$folder"
  exit 0
fi

work="$(mktemp -d "$cache/.sysroot.XXXXXX")"
trap 'rm -rf "$work"' EXIT
read -r -d '' -a packages < <("$here/../install-packages.sh" --list libraries) || true
packages+=(libc6-dev libstdc++-12-dev base-files ca-certificates)
APT_CONFIG="$(python3 -B "$here/../private_apt.py" "$work/apt" --architecture "$architecture")"
export APT_CONFIG
echo "sysroot.sh: downloading Debian packages of $architecture" >&2
for attempt in 1 2 3; do
  if apt-get update -q >"$work/log" 2>&1 && apt-get install -q -y --download-only "${packages[@]}" >>"$work/log" 2>&1; then
    break
  fi
  echo "sysroot.sh: attempt $attempt of 3 failed: $(tail -n 1 "$work/log")" >&2
  [[ $attempt != 3 ]] || die "the packages of $architecture can't be downloaded"
done

# As on every Debian since 12; a package that has files in /lib puts them into /usr/lib.
root="$work/root"
dpkg="$root/var/lib/dpkg"
mkdir -p "$dpkg/info" "$root"/usr/{lib,bin,sbin}
ln -s usr/lib usr/bin usr/sbin "$root"
echo 1 >"$dpkg/info/format"
for deb in "$work"/apt/cache/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" >"$work/files.tar"
  tar -x --keep-directory-symlink --no-same-owner -C "$root" -f "$work/files.tar"
  dpkg-deb --field "$deb" >"$work/control"
  name="$(sed -n 's/^Package: //p' "$work/control")"
  ! grep -qx 'Multi-Arch: same' "$work/control" || name+=":$architecture"
  { cat "$work/control"; printf 'Status: install ok installed\n\n'; } >>"$dpkg/status"
  tar -tf "$work/files.tar" | sed -e 's#^\./#/#' -e 's#^/$#/.#' -e 's#/$##' >"$dpkg/info/$name.list"
done
# A link to an absolute path leads into this machine.
find "$root" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
  ln -sfnr "$root$(readlink "$link")" "$link"
done
rm -rf "$folder"
mv "$root" "$folder"
echo "$folder"
